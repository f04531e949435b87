# Begins a command, once under its name, waits for it for a while and says how it stands: a line `state code seconds bytes file`,
# then its output. The command runs in a session of its own, so that it outlives this script.
calls=$PWD/.bobbin/calls
dir=$calls/$BOBBIN_CALL
ticks() { cut -d ' ' -f 22 "/proc/$1/stat" 2>/dev/null; }
alive() {
  # Whoever has made the folder a moment ago has not started it yet.
  if [ ! -f "$dir/pid" ]; then [ -z "$(find "$dir" -maxdepth 0 -mmin +1)" ]; return; fi
  read -r pid since <"$dir/pid"
  # A number alone may be another process's by now: the sandbox may have been stopped.
  [ -n "$since" ] && [ "$(ticks "$pid")" = "$since" ]
}
if [ -n "${BOBBIN_CMD+set}" ]; then
  case $BOBBIN_CWD in /*) cwd=$BOBBIN_CWD ;; *) cwd=$PWD/$BOBBIN_CWD ;; esac
  if [ ! -d "$cwd" ]; then echo "nofolder 0 0 0 -"; exit 0; fi
  mkdir -p "$calls"
  if mkdir "$dir" 2>/dev/null; then
    printf '%s\n' "$BOBBIN_CMD" >"$dir/cmd"
    : >"$dir/out"
    date +%s >"$dir/began"
    shell=$(command -v bash || command -v sh)
    limit=$BOBBIN_LIMIT
    # The variables that the call sets are the command's alone.
    runner='cd "$2" && (
        for BOBBIN_NAME in $BOBBIN_NAMES; do
          eval "export $BOBBIN_NAME=\"\$BOBBIN_V_$BOBBIN_NAME\""
          unset "BOBBIN_V_$BOBBIN_NAME"
        done
        unset BOBBIN_NAME BOBBIN_NAMES
        exec timeout -k 5 "$3" "$4" "$1/cmd"
      ) >"$1/out" 2>&1 </dev/null
      echo "$? $(date +%s)" >"$1/exit.new" && mv "$1/exit.new" "$1/exit"'
    (
      own=$dir
      unset BOBBIN_CMD BOBBIN_CALL BOBBIN_CWD BOBBIN_LIMIT BOBBIN_KEPT BOBBIN_LOOKS BOBBIN_BYTES
      exec setsid sh -c "$runner" sh "$own" "$cwd" "$limit" "$shell" >/dev/null 2>&1 </dev/null
    ) &
    pid=$!
    echo "$pid $(ticks "$pid")" >"$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
    # The oldest make room, unless they still run.
    ls -1t "$calls" | tail -n "+$BOBBIN_KEPT" | while read -r old; do
      if [ -f "$calls/$old/exit" ] || [ -f "$calls/$old/changed" ]; then rm -rf "${calls:?}/$old"; fi
    done
  fi
fi
if [ ! -d "$dir" ] || [ -f "$dir/changed" ]; then echo "unknown 0 0 0 -"; exit 0; fi
looks=0
while [ ! -f "$dir/exit" ] && [ "$looks" -lt "$BOBBIN_LOOKS" ] && alive; do
  sleep 0.2
  looks=$((looks + 1))
done
state=running code=0 until=$(date +%s)
if [ ! -f "$dir/exit" ] && ! alive; then state=lost; fi
if [ -f "$dir/exit" ]; then state=done; read -r code until <"$dir/exit"; fi
began=$(cat "$dir/began" 2>/dev/null || echo "$until")
bytes=0
if [ -f "$dir/out" ]; then bytes=$(wc -c <"$dir/out" | tr -d ' '); fi
echo "$state $code $((until - began)) $bytes $dir/out"
if [ "$bytes" -eq 0 ]; then
  exit 0
elif [ "$bytes" -le "$BOBBIN_BYTES" ]; then
  cat "$dir/out"
else
  half=$((BOBBIN_BYTES / 2))
  head -c "$half" "$dir/out"
  printf '\n[%s bytes are left out here]\n' "$((bytes - 2 * half))"
  tail -c "$half" "$dir/out"
fi

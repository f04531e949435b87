# Begins a project's set-up unless it was begun, which it says with `begun`, and says how far it is; every process of
# one that is over is ended.
# Set in the environment: what write_steps.sh reads; BOBBIN_OF, the sandbox; BOBBIN_SERVICES; BOBBIN_SINCE, ticks: what
# started later is the set-up's; BOBBIN_STEP_S and BOBBIN_ALL_S, bounds in seconds; BOBBIN_LATE, `on` if the second is
# over, whatever the files say; BOBBIN_LOG_BYTES, of one step; BOBBIN_GOES_ON, `on` if each step stands for itself. Runs
# in the sandbox's working directory, by any POSIX shell.
# clean.sh, services.sh and write_steps.sh come first.
umask 077
root=$(pwd -P)
dir="$root/.bobbin/set-up"
for tool in awk grep head mkfifo tail timeout; do
  command -v "$tool" >/dev/null 2>&1 || { printf 'over\nend 127\n'; exit 0; }
done
# A snapshot of another sandbox brings that one's along.
if [ "$(cat "$dir/of" 2>/dev/null)" != "$BOBBIN_OF" ]; then rm -rf "$dir"; fi
mkdir -p "$dir" || exit 1
IFS= read -r stat </proc/self/stat
set -- ${stat##*) }
now=${20} runner=
if [ ! -e "$dir/runs" ]; then
  printf '%s\n' "$BOBBIN_OF" >"$dir/of"
  # Steps expect an empty database, and not that of the prebuild that they do not fit.
  if [ "$(head -c 300 "$root/.bobbin/prebuilt" 2>/dev/null)" = "$BOBBIN_OF" ]; then
    rm -rf "$services"
    if [ "$(id -u)" -eq 0 ]; then rm -rf /var/lib/bobbin-postgres; fi
  fi
  # A database that the steps fill; it is stopped with them.
  for service in $BOBBIN_SERVICES; do "start_$service" >"$dir/$service.log" 2>&1; done
  write_steps "$dir" || exit 1
  [ -e "$dir/began" ] || { echo "$now" >"$dir/began" && echo begun; }
  detached sh "$dir/run.sh" "$dir" "$BOBBIN_STEPS" "$BOBBIN_STEP_S" "$BOBBIN_ALL_S" "$BOBBIN_LOG_BYTES" "" "$BOBBIN_GOES_ON"
  runner=$!
fi

# Whose processes are looked at: where this user may become root, those of all.
as=
if [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then as="sudo -n"; fi
is_seen() { [ -n "$as" ] || [ "$(id -u)" -eq 0 ] || [ -O "/proc/$1" ]; }
# Processes that began after the set-up was wanted, without this shell, those above it, those below it but for the
# runner, and the kernel's. "gone" stands for one that vanished meanwhile: it may have become another. Argument:
# processes that are spared, with their children.
later() {
  for stat in /proc/[0-9]*/stat; do
    pid=${stat#/proc/}
    pid=${pid%/stat}
    is_seen "$pid" || continue
    line=
    # A name may hold a line break.
    while IFS= read -r part || [ -n "$part" ]; do line="$line $part"; done 2>/dev/null <"$stat"
    printf '%s %s\n' "$pid" "${line##*) }"
  done 2>/dev/null | awk -v since="$BOBBIN_SINCE" -v me="$$" -v runner="$runner" -v readers="$1" '
    BEGIN { split(readers, listed); for (nth in listed) reader[listed[nth]] = 1 }
    NF < 22 { print "gone"; next }
    { above[$1] = $3; kernel[$1] = int($8 / 2097152) % 2; began[$1] = $21; state[$1] = $2 }
    END {
      for (at = me; at > 1; at = above[at]) if (at in spared) break; else spared[at] = 1
      for (pid in began) {
        if (pid in reader || above[pid] in reader) continue
        if (pid == 1 || kernel[pid] || state[pid] == "Z" || began[pid] + 0 < since + 0) continue
        hops = 0
        for (at = pid; at > 1 && at != me && at != runner && hops < 1000; at = above[at]) hops++
        if (at != me && !(pid in spared)) print pid
      }
    }'
}
# Where others run under the same user, only what still says that it belongs to a project of this folder.
ours() {
  if [ -z "$BOBBIN_SANDBOX_UNCONFINED" ]; then cat; return; fi
  while read -r pid; do
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -Fxq "BOBBIN_PROJECT_OF=$root" && echo "$pid"
  done
}
# What a step has put in the place of a file is not read.
ended() { is_file "$dir/ends" && head -c 4096 "$dir/ends" | grep -qx over; }
died() { is_file "$dir/runs" && [ -s "$dir/runs" ] && ! is_alive "$dir/runs"; }
# Whether they have run for longer than they may. The first look may come long after the recipe was read.
late() {
  if [ -n "$BOBBIN_LATE" ]; then return; fi
  since=
  is_file "$dir/began" && IFS= read -r since <"$dir/began"
  case "$since" in '' | 0* | *[!0-9]* | ????????????????*) since=$BOBBIN_SINCE ;; esac
  [ $(((now - since) / $(getconf CLK_TCK 2>/dev/null || echo 100))) -gt $((BOBBIN_ALL_S + 30)) ]
}
if ended || died || late; then
  for service in $BOBBIN_SERVICES; do "stop_$service" >/dev/null 2>&1; done
  # What keeps the output of a step gets it to its end, once nobody writes any more.
  readers=$(is_file "$dir/readers" && head -c 4096 "$dir/readers" | tr '\n' ' ')
  round=0 clean=0
  while [ "$round" -lt 80 ] && [ "$clean" -lt 3 ]; do
    left=$(later "$readers" | ours)
    if [ -n "$left" ]; then
      clean=0
      pids=$(printf '%s\n' "$left" | grep -v gone)
      $as kill -STOP $pids 2>/dev/null
      $as kill -KILL $pids 2>/dev/null
    elif [ -n "$readers" ]; then
      sleep 0.3
      readers=
    else
      clean=$((clean + 1))
    fi
    round=$((round + 1))
    if [ "$round" -gt 5 ] || [ -z "$left" ]; then sleep 0.1; fi
  done
  rm -f "$dir/variables"
  show_logs set-up
  echo over
  if [ "$clean" -lt 3 ]; then echo left; fi
fi
if is_file "$dir/ends"; then
  head -c 4096 "$dir/ends" | grep -x '[0-9]*\|late\|unrun' | head -n "$BOBBIN_STEPS" | sed 's/^/end /'
fi
if is_file "$dir/took"; then
  head -c 4096 "$dir/took" | grep -x '[0-9]*' | head -n "$BOBBIN_STEPS" | sed 's/^/took /'
fi
exit 0

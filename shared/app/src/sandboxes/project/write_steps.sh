is_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
# Copies the logs of $dir to where an agent reads them without asking. What a repository or a step has put in the way is
# not followed. show_logs FOLDER
show_logs() {
  to="$root/project/.bobbin/$1"
  [ ! -L "$root/project/.bobbin" ] && [ ! -L "$to" ] && mkdir -p "$to" || return 0
  for log in "$dir"/*.log; do
    is_file "$log" && rm -f "$to/${log##*/}" && head -c "$BOBBIN_LOG_BYTES" "$log" >"$to/${log##*/}"
  done 2>/dev/null
}
# Writes the steps that stand in the environment into a folder: BOBBIN_STEPS, how many; BOBBIN_STEP_N; BOBBIN_VARIABLES,
# lines that export them; BOBBIN_RUNNER, the program that runs them.
write_steps() {
  nth=0
  while [ "$nth" -lt "$BOBBIN_STEPS" ]; do
    nth=$((nth + 1))
    eval "printf '%s\n' \"\$BOBBIN_STEP_$nth\"" >"$1/new" && mv -f "$1/new" "$1/$nth.sh" || return 1
  done
  printf '%s\n' "$BOBBIN_VARIABLES" >"$1/new" && mv -f "$1/new" "$1/variables" &&
    printf '%s\n' "$BOBBIN_RUNNER" >"$1/new" && mv -f "$1/new" "$1/run.sh"
}

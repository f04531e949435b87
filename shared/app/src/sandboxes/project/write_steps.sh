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

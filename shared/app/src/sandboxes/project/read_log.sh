# Prints what the steps of the last set-up have said, in their order, the end of each, or of the one that BOBBIN_STEP
# counts. Runs in the sandbox's working directory, by any POSIX shell.
nth=${BOBBIN_STEP:-1}
while [ -f ".bobbin/set-up/$nth.log" ] && [ "$nth" -le "${BOBBIN_STEP:-20}" ]; do
  printf -- '-- step %s\n' "$nth"
  # A line that is there in part may begin with part of a secret.
  if [ $(($(wc -c <".bobbin/set-up/$nth.log"))) -gt 3000 ]; then
    said=$(tail -c 3000 ".bobbin/set-up/$nth.log" | tr '\r' '\n' | sed 1d)
    printf '%s\n' "${said:-(one long line left out)}"
  else
    cat ".bobbin/set-up/$nth.log"
  fi
  printf '\n'
  nth=$((nth + 1))
done

# In place of each command that is asked for on a test's machine: counts it, and where its number is the one that is armed, waits
# before it is done, or after, until it is let go. In the folder: armed (number and when), count, lock, held, go.
at=/var/lib/hold
hold() {
  : >"$at/held"
  while [ ! -e "$at/go" ]; do sleep 0.05; done
}
read -r armed when 2>/dev/null <"$at/armed" || exec sh -c "$SSH_ORIGINAL_COMMAND"
number=$(
  {
    flock 9
    number=$(($(cat "$at/count") + 1))
    echo "$number" >"$at/count"
    echo "$number"
  } 9<"$at/lock"
)
case "$number $when" in
  "$armed before") hold ;;
  "$armed after")
    sh -c "$SSH_ORIGINAL_COMMAND"
    code=$?
    hold
    exit "$code"
    ;;
esac
exec sh -c "$SSH_ORIGINAL_COMMAND"

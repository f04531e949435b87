# Looks at the host's registry and changes it, as its owner, by any POSIX shell. Set before this text: verb, name and max
# (sandboxes that the host may have); for a claim labels, instead, snapshot and without; else from and to.
root=/var/lib/bobbin
[ -r "$root/host" ] || exit 90
. "$root/host"
cd "$root/registry" 2>/dev/null && [ -O . ] || exit 90
umask 077
exec 9>>.lock || exit 93
flock -w 5 9 || exit 75

# The file of the sandbox with this name.
entry() {
  for file in [0-9]*."$name".*; do
    [ -f "$file" ] && printf '%s' "$file" && return 0
  done
  return 1
}

is_in() {
  case " $1 " in *" $2 "*) return 0 ;; esac
  return 1
}

case "$verb" in
claim)
  if ! entry >/dev/null; then
    count=0
    for file in [0-9]*.*.*; do
      if [ -f "$file" ]; then count=$((count + 1)); fi
    done
    [ "$count" -lt "$max" ] || exit 91
    slot=1
    while [ "$slot" -le "$sandboxes" ]; do
      set -- "$slot".*
      if [ ! -f "$1" ] && ! is_in "$without" "$slot"; then break; fi
      slot=$((slot + 1))
    done
    [ "$slot" -le "$sandboxes" ] || exit 91
    printf '{"created_s":%s,"instead_of":%s,"snapshot":%s,"labels":%s}' "$(date +%s)" "$instead" "$snapshot" "$labels" >.new &&
      mv .new "$slot.$name.preparing" || exit 93
  fi
  ;;
move)
  if file=$(entry) && is_in "$from" "${file##*.}"; then
    mv "$file" "${file%.*}.$to" || exit 93
  fi
  ;;
release)
  if file=$(entry) && is_in "$from" "${file##*.}"; then
    rm "$file" || exit 93
  fi
  ;;
esac

printf 'host\t%s\t%s\n' "$sandboxes" "$first_port"
for file in [0-9]*.*.*; do
  if [ -f "$file" ]; then
    printf '%s\t' "$file"
    cat "$file"
    echo
  fi
done
exit 0

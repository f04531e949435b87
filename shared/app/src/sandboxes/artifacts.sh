# Lists the files that the agent left to be shown, the newest first: checksum, bytes and path of each. Set before this
# text: bytes (larger files are not read); in the environment: BOBBIN_WORKSPACE, where it works. Runs in the sandbox's
# working directory, by any POSIX shell.
case "$BOBBIN_WORKSPACE" in
  /*) root=$BOBBIN_WORKSPACE ;;
  *) root=$(pwd -P)/$BOBBIN_WORKSPACE ;;
esac
cd "$root/output/display" 2>/dev/null || exit 0
# A folder that is a link leads elsewhere.
[ "$(pwd -P)" = "$root/output/display" ] || exit 0
set -f
find . -type f ! -path '*/.*' ! -name '*[[:cntrl:]]*' -exec ls -1td {} + 2>/dev/null | head -n 100 |
  while IFS= read -r file; do
    set -- $(ls -lnd "$file" 2>/dev/null)
    size=$5
    case "$size" in '' | *[!0-9]*) continue ;; esac
    sum=-
    if [ "$size" -le "$bytes" ]; then
      set -- $(cksum "$file" 2>/dev/null)
      sum=$1
    fi
    [ -n "$sum" ] && printf '%s %s %s\n' "$sum" "$size" "${file#./}"
  done
exit 0

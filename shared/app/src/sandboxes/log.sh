# Shows the end of a log of the OpenCode server, or what it has grown by. From the environment: which log, how many lines of
# its end (0: from a byte on), the file and byte that are known, and how many bytes at most. The first line says how many
# bytes of which file are read now. Runs in the sandbox's working directory, by any POSIX shell.
case "$BOBBIN_LOG_WHICH" in
  server) file=$(ls -t "$(pwd)/.bobbin/opencode.log" "$(pwd)/.bobbin/agentd.log" 2>/dev/null | head -n 1) ;;
  *) file=$(ls -t "${XDG_DATA_HOME:-$HOME/.local/share}"/opencode/log/*.log 2>/dev/null | head -n 1) ;;
esac
[ -n "$file" ] && [ -f "$file" ] || exit 66
size=$(wc -c <"$file" | tr -d ' ')
if [ "$BOBBIN_LOG_LINES" -gt 0 ]; then
  printf '%s %s\n' "$size" "$file"
  head -c "$size" "$file" | tail -n "$BOBBIN_LOG_LINES" | tail -c "$BOBBIN_LOG_MOST"
  exit 0
fi
from="$BOBBIN_LOG_FROM"
# Another file, or one that was begun anew.
if [ "$file" != "$BOBBIN_LOG_KNOWN" ] || [ "$size" -lt "$from" ]; then from=0; fi
left=$((size - from))
if [ "$left" -gt "$BOBBIN_LOG_MOST" ]; then left="$BOBBIN_LOG_MOST"; fi
printf '%s %s\n' "$((from + left))" "$file"
tail -c "+$((from + 1))" "$file" | head -c "$left"

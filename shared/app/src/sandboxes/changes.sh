# What a turn changed in the project of a sandbox that is worked in by tools: since the end of the turn before, or since the
# project was made. Tells the counts, what became of each file, and one patch, each part after a line of its own. In the
# environment: BOBBIN_TURN (the turn; a repeat compares with the same beginning), BOBBIN_FILES and BOBBIN_BYTES (bounds). Runs in
# the sandbox's working directory, by any POSIX shell.
cd project 2>/dev/null || exit 0
command -v git >/dev/null 2>&1 && top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$(pwd -P)" ] || exit 0
plain() { git -c core.quotePath=false -c core.fsmonitor=false -c core.hooksPath=/dev/null -c gc.auto=0 "$@"; }
last=$(plain rev-parse -q --verify refs/bobbin/last) || last=$(plain rev-parse -q --verify HEAD) || exit 0
index=$(mktemp) || exit 1
trap 'rm -f "$index" "$index.lock"' EXIT
cp "$(plain rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
# What cannot be added by itself (a repository without a commit in a folder, say) is left out.
GIT_INDEX_FILE=$index plain add -A --ignore-errors . 2>/dev/null
[ $? -lt 128 ] || exit 1
now=$(GIT_INDEX_FILE=$index plain write-tree) || exit 1
note=$(plain rev-parse --git-path bobbin-turn)
if [ "$(cat "$note" 2>/dev/null)" = "$BOBBIN_TURN" ]; then
  base=$(plain rev-parse -q --verify refs/bobbin/base) || base=$last
else
  base=$last
  plain update-ref refs/bobbin/base "$base" && printf '%s' "$BOBBIN_TURN" >"$note" || exit 1
fi
plain update-ref refs/bobbin/last "$now" || exit 1
compare() { plain diff --no-ext-diff --no-textconv --no-renames --no-color "$@" "$base" "$now"; }
echo '=== counts'
compare --numstat | head -n "$BOBBIN_FILES"
echo '=== files'
compare --name-status | head -n "$BOBBIN_FILES"
echo '=== patch'
compare --patch | head -c "$BOBBIN_BYTES"
exit 0

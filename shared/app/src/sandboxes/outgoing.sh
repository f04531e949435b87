# Makes one commit of all that a checkout holds, keeps it under a ref, and puts what it has beyond the commit that was
# brought into files for the worker. The agent's files, its index and its branch stay as they are. Its last line is
# `outgoing COMMIT BYTES FROM`; FROM is the newest commit of the branch into which the work goes that the work has. Set in the environment: BOBBIN_WORKSPACE, the checkout; BOBBIN_BASE, the commit that was
# brought; BOBBIN_INTO, the short name of that branch; BOBBIN_AT, the time of a new commit in seconds since 1970; BOBBIN_COMMIT, the commit that a person was shown,
# empty if there is none yet; BOBBIN_OUT, the folder of the files; BOBBIN_BYTES, the most bytes of all of them, and
# BOBBIN_PIECE, those of one. Runs in the sandbox's working directory, by any POSIX shell. Exit codes: outgoing.rs.
umask 077
out="$(pwd -P)/$BOBBIN_OUT"
ref=refs/worktree/bobbin/outgoing
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
git_() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.splitIndex=false -c gc.auto=0 "$@"; }
failed() { tail -n 8 "$out/words" | head -c 2000; exit 1; }
command -v git >/dev/null 2>&1 || exit 3
cd "$BOBBIN_WORKSPACE" 2>/dev/null && top=$(git_ rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$(pwd -P)" ] ||
  exit 4
rm -rf "$out"
mkdir -p "$out" || { echo "No space left on device"; exit 1; }
trap 'rm -f "$out/pack" "$out/index" "$out/index.lock" "$out/status" "$out/words"' EXIT
head=$(git_ rev-parse -q --verify 'HEAD^{commit}') || exit 8
git_ merge-base --is-ancestor "$BOBBIN_BASE" "$head" 2>/dev/null || exit 8

# With the times of the agent's index: git reads again what may have changed since.
index=$(git_ rev-parse --git-path index)
export GIT_INDEX_FILE="$out/index"
cp -p "$index" "$GIT_INDEX_FILE" 2>/dev/null || git_ read-tree "$head" 2>"$out/words" || failed
# What stands beside the repository is not its own, whatever it does not ignore.
# What cannot be added by itself (a repository without a commit in a folder, say) is left out.
git_ add -A --ignore-errors -- . ':(exclude,top).bobbin/repositories' </dev/null >"$out/words" 2>&1
[ $? -lt 128 ] || failed
tree=$(git_ write-tree 2>"$out/words") || failed
git_ ls-tree -r "$tree" -- .bobbin/repositories | grep -q '^160000 ' && exit 9

kept=$(git_ rev-parse -q --verify "$ref^{commit}")
if [ "$tree" = "$(git_ rev-parse "$head^{tree}")" ]; then
  commit=$head
elif [ -n "$kept" ] && [ "$tree $head" = "$(git_ log -1 --no-show-signature --format='%T %P' "$kept")" ]; then
  commit=$kept
elif [ -z "$BOBBIN_COMMIT" ]; then
  export GIT_AUTHOR_NAME=Bobbin GIT_AUTHOR_EMAIL=bobbin@localhost GIT_AUTHOR_DATE="@$BOBBIN_AT +0000"
  export GIT_COMMITTER_NAME=Bobbin GIT_COMMITTER_EMAIL=bobbin@localhost GIT_COMMITTER_DATE="@$BOBBIN_AT +0000"
  commit=$(echo "Work in progress" | git_ commit-tree "$tree" -p "$head" 2>"$out/words") || failed
else
  exit 6
fi
[ -z "$BOBBIN_COMMIT" ] || [ "$commit" = "$BOBBIN_COMMIT" ] || exit 6
from=$(git_ merge-base "$commit" "refs/remotes/origin/$BOBBIN_INTO" 2>/dev/null) || from=$BOBBIN_BASE
git_ merge-base --is-ancestor "$BOBBIN_BASE" "$from" 2>/dev/null || from=$BOBBIN_BASE
[ "$commit" != "$from" ] || exit 5
# Nobody else writes this ref: a lock on it is of a script that was ended.
rm -f "$(git_ rev-parse --git-path "$ref").lock"
git_ update-ref "$ref" "$commit" 2>"$out/words" || failed

{
  printf '%s\n^%s\n^%s\n' "$commit" "$BOBBIN_BASE" "$from" |
    git_ pack-objects -q --revs --stdout --window=0 --no-reuse-delta --no-use-bitmap-index 2>"$out/words"
  echo $? >"$out/status"
} | head -c $((BOBBIN_BYTES + 1)) >"$out/pack"
bytes=$(($(wc -c <"$out/pack")))
[ "$bytes" -le "$BOBBIN_BYTES" ] || exit 7
[ "$(cat "$out/status")" = 0 ] || failed
n=0
while [ $((n * BOBBIN_PIECE)) -lt "$bytes" ]; do
  dd if="$out/pack" of="$out/$n" bs="$BOBBIN_PIECE" skip="$n" count=1 2>"$out/words" || failed
  n=$((n + 1))
done
echo "outgoing $commit $bytes $from"
exit 0

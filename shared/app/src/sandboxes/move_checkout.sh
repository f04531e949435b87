# Moves a checkout to the newest commit of its branch, if it holds nothing that was not pushed. Set in the environment:
# BOBBIN_WORKSPACE, the checkout; BOBBIN_STORE, the name of the copy beside it; BOBBIN_BASE, the commit that was brought; BOBBIN_PUSHED, the commit that was pushed
# last, empty if there is none; BOBBIN_BRANCH, the short name of the branch; BOBBIN_COMMIT, its newest commit, which the
# copy beside the checkout has. Runs in the sandbox's working directory, by any POSIX shell. Exit codes: 0 moved, 3 the
# checkout holds other work, 1 anything else.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
store="$(pwd -P)/.bobbin/$BOBBIN_STORE"
git_() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 "$@" </dev/null; }
cd "$BOBBIN_WORKSPACE" 2>/dev/null && top=$(git_ rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$(pwd -P)" ] ||
  exit 3
# Where the last move went, or was going when it was interrupted.
going=refs/worktree/bobbin/going
branch="refs/heads/$BOBBIN_BRANCH"
head=$(git_ rev-parse -q --verify 'HEAD^{commit}') || exit 3
for busy in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
  [ ! -e "$(git_ rev-parse --git-path "$busy")" ] || exit 3
done

# The files as a tree, with the times of the agent's index: git reads again what may have changed since.
index=$(git_ rev-parse --git-path index)
side="$(git_ rev-parse --git-path bobbin-index)"
trap 'rm -f "$side" "$side.lock"' EXIT
rm -f "$side" "$side.lock"
# Somebody works in it: a background process of git.
[ ! -e "$index.lock" ] || exit 1
cp -p "$index" "$side" 2>/dev/null || exit 1
staged=$(GIT_INDEX_FILE="$side" git_ write-tree 2>/dev/null) || exit 3
# What is ignored beside an excluded path counts for git as a fault, of which nothing comes.
files=$(
  export GIT_INDEX_FILE="$side"
  git_ add -A -- . ':(exclude,top).bobbin/repositories' >/dev/null 2>&1
  [ $? -lt 128 ] && git_ write-tree 2>/dev/null
) || exit 3
from=
for commit in "$BOBBIN_PUSHED" "$(git_ rev-parse -q --verify "$going^{commit}")" "$BOBBIN_BASE"; do
  [ -z "$from" ] && [ -n "$commit" ] && [ "$files" = "$(git_ rev-parse -q --verify "$commit^{tree}")" ] && from=$commit
done
[ -n "$from" ] || exit 3
# What is only staged is work too.
[ "$staged" = "$files" ] || [ "$staged" = "$(git_ rev-parse "$head^{tree}")" ] || exit 3
# Commits that were never pushed, here or on the branch, stay where they are.
is_known() {
  for known in "$BOBBIN_PUSHED" "$BOBBIN_BASE" "$BOBBIN_COMMIT"; do
    [ -n "$known" ] && git_ merge-base --is-ancestor "$1" "$known" 2>/dev/null && return 0
  done
  return 1
}
git_ fetch --quiet --no-tags "$store" "+$branch:refs/remotes/origin/$BOBBIN_BRANCH" >/dev/null 2>&1 || exit 1
git_ rev-parse -q --verify "$BOBBIN_COMMIT^{commit}" >/dev/null || exit 1
is_known "$head" || exit 3
old=$(git_ rev-parse -q --verify "$branch^{commit}")
[ -z "$old" ] || is_known "$old" || exit 3
# Not under another worktree of the same repository.
if [ "$(git_ symbolic-ref -q HEAD)" != "$branch" ]; then
  git_ worktree list --porcelain | grep -qxF "branch $branch" && exit 3
fi

# Ignored files are work too, and git would write over them.
git_ -c core.quotePath=false diff-tree -r --name-only --no-renames --diff-filter=A "$from" "$BOBBIN_COMMIT" |
  while IFS= read -r path; do
    case "$path" in '"'*) exit 3 ;; esac
    [ ! -e "$path" ] && [ ! -L "$path" ] || exit 3
    while [ "$path" != "${path%/*}" ]; do
      path=${path%/*}
      [ ! -L "$path" ] || exit 3
      [ ! -e "$path" ] || { [ -d "$path" ] && break; exit 3; }
    done
  done || exit 3
git_ update-ref "$going" "$BOBBIN_COMMIT" >/dev/null 2>&1 || exit 1
GIT_INDEX_FILE="$side" git_ read-tree -m -u "$from" "$BOBBIN_COMMIT" >/dev/null 2>&1 || exit 3
mv "$side" "$index" || exit 1
git_ update-ref "$branch" "$BOBBIN_COMMIT" >/dev/null 2>&1 && git_ symbolic-ref HEAD "$branch" || exit 1
exit 0

# Makes a workspace of a thread's own ready, and tells on its last line what it is and where: `worktree DIRECTORY` or
# `plain DIRECTORY`. Set in the environment: BOBBIN_WORKSPACE, its name. Runs in the sandbox's working directory, by any
# POSIX shell. What was done before is found; what a crash left half done is done again; somebody's work is never deleted.
umask 077
root=$(pwd -P)
common="$root/project"
own="$root/workspaces/$BOBBIN_WORKSPACE"
branch="bobbin/$BOBBIN_WORKSPACE"
command -v git >/dev/null 2>&1 || { echo "git is not installed in the sandbox's image"; exit 3; }
mkdir -p "$root/.bobbin" "$root/workspaces" || { echo "No space left on device"; exit 1; }

# One at a time, where the image can say so. A script that ran over its time is gone, and with it what it held.
if command -v flock >/dev/null 2>&1; then
  exec 9>"$root/.bobbin/workspaces.lock"
  flock -w 20 9 || { echo "another workspace is being made ready"; exit 4; }
fi

# Neither hooks nor a prompt: a repository is somebody else's code.
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true
in_common() { git -C "$common" -c core.hooksPath=/dev/null "$@" </dev/null; }
in_own() { git -C "$own" -c core.hooksPath=/dev/null "$@" </dev/null; }
ready() {
  grep -qxF ".bobbin/" "$2/info/exclude" 2>/dev/null || { mkdir -p "$2/info" && echo ".bobbin/" >>"$2/info/exclude"; }
  grep -qxF "output/display/" "$2/info/exclude" 2>/dev/null || echo "output/display/" >>"$2/info/exclude"
  cd "$own" || exit 1
  fit
  echo "$1 $own"
  exit 0
}

# There is a repository where somebody's files have been committed, or which has come from somewhere. The empty one that
# an agent's server is started in is none.
has_repository() {
  [ -e "$common/.git" ] || return 1
  in_common rev-parse -q --verify HEAD >/dev/null 2>&1 || return 1
  [ -n "$(in_common ls-tree HEAD 2>/dev/null | head -n 1)" ] || [ -n "$(in_common remote 2>/dev/null)" ]
}

# A worktree is whole when its administration knows it and git has finished it: until then it says `initializing`.
administration() { sed -n 's/^gitdir: //p' "$own/.git" 2>/dev/null; }
half_made() { grep -q '^initializing' "$(administration)/locked" 2>/dev/null; }
whole() {
  [ -f "$own/.git" ] && [ -d "$(administration)" ] && ! half_made && in_own rev-parse -q --verify HEAD >/dev/null 2>&1
}
git_folder() { (cd "$1" && cd "$(git rev-parse --git-common-dir)" && pwd -P); }

# What cannot be mended is set aside: it may hold work.
set_aside() {
  number=1
  while [ -e "$own.left-$number" ]; do number=$((number + 1)); done
  mv "$own" "$own.left-$number" || { echo "No space left on device"; exit 1; }
}

if [ -f "$own/.git" ]; then
  # The sandbox may have been made of a snapshot, whose working directory lay elsewhere.
  [ -d "$(administration)" ] || in_common worktree repair "$own" >/dev/null 2>&1
  whole && ready worktree "$(git_folder "$own")"
  if half_made; then
    rm -rf "$(administration)" "$own"
  else
    set_aside
  fi
fi

if has_repository && [ ! -d "$own/.git" ]; then
  # An empty folder is filled by git; one with files is none of a worktree's.
  [ -d "$own" ] && { rmdir "$own" 2>/dev/null || set_aside; }
  in_common worktree prune >/dev/null 2>&1
  folder=$(git_folder "$common")
  # Nobody else writes this branch: a lock on it is of one that was ended.
  rm -f "$folder/refs/heads/$branch.lock"
  if in_common rev-parse -q --verify "refs/heads/$branch" >/dev/null 2>&1; then
    words=$(in_common worktree add --quiet "$own" "$branch" 2>&1)
  else
    words=$(in_common worktree add --quiet -b "$branch" "$own" 2>&1)
  fi
  status=$?
  [ $status -eq 0 ] && whole && ready worktree "$folder"
  printf '%s\n' "$words" | tail -n 8 | head -c 2000
  exit 1
fi

# A folder with a repository of its own: diffs and reverts need one with a commit.
mkdir -p "$own" || { echo "No space left on device"; exit 1; }
if [ ! -d "$own/.git" ] || ! in_own rev-parse -q --verify HEAD >/dev/null 2>&1; then
  rm -f "$own/.git/index.lock" "$own/.git/HEAD.lock"
  words=$(in_own init -q . 2>&1) &&
    words=$(in_own -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false \
      commit -q --allow-empty -m "Start" 2>&1) ||
    { printf '%s\n' "$words" | tail -n 8 | head -c 2000; exit 1; }
fi
ready plain "$own/.git"

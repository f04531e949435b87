# Makes the project's folder fit for work: a repository with a commit, in which what we bring in is no change. Runs in the
# sandbox's working directory, by any POSIX shell.
umask 077
root=$(pwd)
mkdir -p "$root/.bobbin" "$root/project" || { echo "the disk cannot be written"; exit 1; }

# Diffs and reverts need a repository with a commit. One that lies further up is somebody else's.
if command -v git >/dev/null 2>&1 && [ ! -e "$root/project/.git" ]; then
  git init -q "$root/project" </dev/null >/dev/null 2>&1
  git -C "$root/project" -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false \
    commit -q --allow-empty -m "Start" </dev/null >/dev/null 2>&1
fi

# What we bring in and what is only shown to people are no changes of the project.
if [ -d "$root/project/.git" ]; then
  exclude="$root/project/.git/info/exclude"
  mkdir -p "$root/project/.git/info"
  for line in ".bobbin/" "output/display/"; do
    grep -qxF "$line" "$exclude" 2>/dev/null || printf '%s\n' "$line" >>"$exclude"
  done
fi

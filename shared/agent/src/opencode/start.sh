# Prepares the project and starts the OpenCode server. Set before this text: restart (0 or 1), marker (JSON).
# Runs in the sandbox's working directory, by any POSIX shell; secrets are only in the environment.
umask 077
command -v opencode >/dev/null 2>&1 || { echo "opencode is not installed"; exit 69; }
root=$(pwd)
port="${OPENCODE_PORT:-4096}"
# Loopback, unless what leads here comes from outside of the machine: then the password is the lock.
host="${OPENCODE_HOSTNAME:-127.0.0.1}"
pid_file="$root/.bobbin/opencode.pid"
log="$root/.bobbin/opencode.log"
mkdir -p "$root/.bobbin" "$root/project" || { echo "the disk cannot be written"; exit 1; }

# Keeps OpenCode from installing its plugin package at every start.
for place in "${XDG_CONFIG_HOME:-$HOME/.config}/opencode" "$root/project/.opencode"; do
  case "$place" in */.opencode) [ -d "$place" ] || continue ;; esac
  mkdir -p "$place/node_modules" && printf '%s\n' "$marker" >"$place/package-lock.json"
done

# Where a repository configures nothing, its rules are still read: they are only words. Rules of the image's own stay.
rules="${XDG_CONFIG_HOME:-$HOME/.config}/opencode/AGENTS.md"
if [ -L "$rules" ] || [ ! -e "$rules" ]; then
  rm -f "$rules"
  if [ -n "${OPENCODE_DISABLE_PROJECT_CONFIG:-}" ]; then
    for file in CLAUDE.md AGENTS.md; do
      [ -f "$root/project/$file" ] && ln -sf "$root/project/$file" "$rules"
    done
  fi
fi

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

# Whether a process is a server on our port. Where there is no /proc, being alive has to do.
is_server() {
  case "$1" in '' | *[!0-9]*) return 1 ;; esac
  kill -0 "$1" 2>/dev/null || return 1
  [ -d /proc/self ] || return 0
  tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q "opencode.* serve .*--port $port "
}

servers() {
  cat "$pid_file" 2>/dev/null
  for entry in /proc/[0-9]*; do echo "${entry#/proc/}"; done
}

if [ "$restart" = 1 ]; then
  found=""
  for pid in $(servers); do
    if is_server "$pid"; then
      found="$found $pid"
      # Its whole group: the commands that it started would go on writing.
      kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null
    fi
  done
  for pid in $found; do
    tries=0
    while is_server "$pid" && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
    is_server "$pid" && { kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null; }
  done
fi

# A server that is still starting is left to it.
if ! is_server "$(cat "$pid_file" 2>/dev/null)"; then
  cd "$root/project" || exit 1
  unset restart marker
  if command -v setsid >/dev/null 2>&1; then
    setsid opencode serve --hostname "$host" --port "$port" >"$log" 2>&1 </dev/null &
  else
    nohup opencode serve --hostname "$host" --port "$port" >"$log" 2>&1 </dev/null &
  fi
  echo $! >"$pid_file"
fi
exit 0

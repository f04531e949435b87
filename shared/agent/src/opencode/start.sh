# Starts the OpenCode server, or the daemon in front of it, in a project that ../prepare.sh, which is before this text, has made
# fit. Set before both: server (opencode or daemon), restart (0 or 1), marker (JSON), and look (1) where it is
# only to look.
# Runs in the sandbox's working directory, by any POSIX shell; secrets are only in the environment.
command -v opencode >/dev/null 2>&1 || { echo "opencode is not installed"; exit 69; }
[ "$server" = opencode ] || command -v bobbin-agentd >/dev/null 2>&1 || { echo "bobbin-agentd is not installed"; exit 70; }
port="${OPENCODE_PORT:-4096}"
# Loopback, unless what leads here comes from outside of the machine: then the password is the lock.
host="${OPENCODE_HOSTNAME:-127.0.0.1}"
pid_file="$root/.bobbin/opencode.pid"
log="$root/.bobbin/opencode.log"

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

# Which process is a server on our port: of the wanted kind, and of the other one, which a stack that has changed its mode
# left. Of the daemon's two halves it is the one that ends the other.
direct="opencode.* serve .*--port $port "
daemon="bobbin-agentd.* --port $port "
case "$server" in daemon) wanted=$daemon; other=$direct ;; *) wanted=$direct; other=$daemon ;; esac

# Whether a process ($2) is such a server ($1). Where there is no /proc, being alive has to do.
is_server() {
  case "$2" in '' | *[!0-9]*) return 1 ;; esac
  kill -0 "$2" 2>/dev/null || return 1
  [ -d /proc/self ] || return 0
  tr '\0' ' ' <"/proc/$2/cmdline" 2>/dev/null | grep -v -e ' --serve ' | grep -q "$1"
}

servers() {
  cat "$pid_file" 2>/dev/null
  for entry in /proc/[0-9]*; do echo "${entry#/proc/}"; done
}

# Ends all such servers.
end_servers() {
  found=""
  for pid in $(servers); do
    if is_server "$1" "$pid"; then
      found="$found $pid"
      # Its whole group: the commands that it started would go on writing.
      kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null
    fi
  done
  for pid in $found; do
    tries=0
    while is_server "$1" "$pid" && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
    is_server "$1" "$pid" && { kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null; }
  done
}

# Only to be looked at: would a start leave a server alone?
if [ "${look:-0}" = 1 ]; then
  is_server "$wanted" "$(cat "$pid_file" 2>/dev/null)" && exit 71
  exit 0
fi

# Both would work on one store, and neither would know of the other's runs.
[ -d /proc/self ] && is_server "$other" "$(cat "$pid_file" 2>/dev/null)" && end_servers "$other"
[ "$restart" = 1 ] && end_servers "$wanted"

# A server that is still starting is left to it.
if ! is_server "$wanted" "$(cat "$pid_file" 2>/dev/null)"; then
  cd "$root/project" || exit 1
  case "$server" in
    daemon) set -- bobbin-agentd --host "$host" --port "$port" --state "$root/.bobbin/agentd" --log "$root/.bobbin/agentd.log" ;;
    *) set -- opencode serve --hostname "$host" --port "$port" ;;
  esac
  unset server restart marker
  if command -v setsid >/dev/null 2>&1; then
    setsid "$@" >"$log" 2>&1 </dev/null &
  else
    nohup "$@" >"$log" 2>&1 </dev/null &
  fi
  echo $! >"$pid_file"
fi
exit 0

# Services as plain processes of the sandbox's user, on 127.0.0.1 alone. Their data is kept in .bobbin/services. Each
# start is repeatable. PostgreSQL does not run as root: there it runs as the user postgres.
services="$(pwd -P)/.bobbin/services"
as_postgres() {
  if [ "$(id -u)" -ne 0 ]; then clean "$@" </dev/null
  elif command -v runuser >/dev/null 2>&1; then clean runuser -u postgres -- "$@" </dev/null
  else echo "PostgreSQL does not run as root, and there is no runuser to become another user."; return 1; fi
}
postgres_bin() {
  for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin; do
    if [ -x "$folder/initdb" ]; then newest=$folder; fi
  done
  if [ -z "$newest" ]; then newest=$(dirname "$(command -v initdb 2>/dev/null)" 2>/dev/null); fi
  [ -x "$newest/initdb" ] || { echo "PostgreSQL is not installed in the sandbox's image."; return 1; }
}
start_postgres() {
  newest=
  postgres_bin || return 127
  data="$services/postgres"
  mkdir -p "$services" || return 1
  if [ "$(id -u)" -eq 0 ]; then
    data=/var/lib/bobbin-postgres
    mkdir -p "$data" && chown postgres "$data" || return 1
  fi
  if [ ! -s "$data/PG_VERSION" ]; then
    as_postgres "$newest/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-sync || return 1
  fi
  "$newest/pg_isready" -q -h 127.0.0.1 -p 5432 && return 0
  # After a stop that it did not survive, another process may have its id.
  read -r pid 2>/dev/null <"$data/postmaster.pid" && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != postgres ] &&
    rm -f "$data/postmaster.pid"
  as_postgres "$newest/pg_ctl" -D "$data" -w -t 30 -l "$data/server.log" \
    -o "-c listen_addresses=127.0.0.1 -c port=5432 -c unix_socket_directories=''" start && return 0
  tail -n 20 "$data/server.log"
  return 1
}
stop_postgres() {
  newest=
  postgres_bin >/dev/null || return 1
  for data in "$services/postgres" /var/lib/bobbin-postgres; do
    if [ -s "$data/PG_VERSION" ]; then
      as_postgres "$newest/pg_ctl" -D "$data" -m fast -w -t 20 stop
      return
    fi
  done
  return 1
}
start_redis() {
  command -v redis-server >/dev/null 2>&1 ||
    { echo "Redis is not installed in the sandbox's image."; return 127; }
  redis-cli -h 127.0.0.1 -p 6379 ping 2>/dev/null | grep -qx PONG && return 0
  mkdir -p "$services/redis" || return 1
  clean redis-server --bind 127.0.0.1 --port 6379 --dir "$services/redis" --save 60 1 --appendonly no \
    --logfile "$services/redis/server.log" --daemonize yes </dev/null || return 1
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    redis-cli -h 127.0.0.1 -p 6379 ping 2>/dev/null | grep -qx PONG && return 0
    sleep 0.1
  done
  tail -n 20 "$services/redis/server.log"
  return 1
}
stop_redis() {
  redis-cli -h 127.0.0.1 -p 6379 ping 2>/dev/null | grep -qx PONG || return 1
  redis-cli -h 127.0.0.1 -p 6379 shutdown save >/dev/null 2>&1
}

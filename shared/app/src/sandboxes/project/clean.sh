# The environment of what a project runs: no variable of the provider or of an agent. clean PROGRAM... runs it so.
clean() {
  for name in HOME PATH USER LOGNAME SHELL LANG LC_ALL TZ TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy \
    no_proxy SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE CARGO_HOME RUSTUP_HOME \
    GOPATH GOROOT JAVA_HOME NVM_DIR VIRTUAL_ENV npm_config_registry PIP_INDEX_URL UV_INDEX_URL; do
    eval "value=\${$name-}"
    if [ -n "$value" ]; then set -- "$name=$value" "$@"; fi
  done
  env -i BOBBIN_PROJECT_OF="$(pwd -P)" PGHOST=127.0.0.1 PGUSER=postgres "$@"
}
# Leaves the exec that it was started by.
detached() {
  # Redirected as a whole: the shell keeps a copy of what it redirects for a function.
  (
    exec </dev/null >/dev/null 2>&1
    if command -v setsid; then clean setsid "$@"; else clean nohup "$@"; fi
  ) &
}
# Whether the process that wrote its id and start into the file still runs.
is_alive() {
  IFS=' ' read -r pid since 2>/dev/null <"$1" || return 1
  [ -n "$since" ] && IFS= read -r stat 2>/dev/null <"/proc/$pid/stat" || return 1
  is_since "$since" ${stat##*) }
}
is_since() {
  shift_to=$1
  shift
  [ "$1" != Z ] && [ "${20}" = "$shift_to" ]
}

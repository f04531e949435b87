# Starts a project's services, then its start steps, unless they were since the sandbox's last start; says what
# failed, `served` after the services, and `begun` once the steps run. Set in the environment: what write_steps.sh
# reads; BOBBIN_SERVICES; BOBBIN_WITHIN_S, after which steps go on by themselves; BOBBIN_LOG_BYTES, of one step. Runs in
# the sandbox's working directory, by any POSIX shell. clean.sh, services.sh and write_steps.sh come first.
umask 077
root=$(pwd -P)
dir="$root/.bobbin/start"
is_alive "$dir/runs" || rm -rf "$dir"
mkdir -p "$dir" || exit 1
rm -f "$services/held"
for service in $BOBBIN_SERVICES; do
  "start_$service" >"$dir/$service.log" 2>&1
  code=$?
  if [ "$code" -ne 0 ]; then echo "service $service $code"; fi
done
echo served
if [ ! -e "$dir/runs" ]; then
  write_steps "$dir" || exit 1
  detached sh "$dir/run.sh" "$dir" "$BOBBIN_STEPS" 2147483647 2147483647 "$BOBBIN_LOG_BYTES" keep
fi
echo begun
until=$(($(date +%s) + BOBBIN_WITHIN_S))
while ! grep -qx over "$dir/ends" 2>/dev/null && [ "$(date +%s)" -lt "$until" ]; do sleep 0.1; done
show_logs start
grep -vx over "$dir/ends" 2>/dev/null | sed 's/^/end /'
exit 0

# Stops the services that run, so that a copy of the disk is whole, or starts again those that were stopped for one.
# Set in the environment: BOBBIN_HOLD, `stop` or `start`; BOBBIN_SERVICES. Runs in the sandbox's working directory, by
# any POSIX shell.
# clean.sh and services.sh come first.
held="$services/held"
if [ "$BOBBIN_HOLD" = stop ]; then
  for service in $BOBBIN_SERVICES; do
    if "stop_$service" >/dev/null 2>&1; then echo "$service" >>"$held"; fi
  done
elif [ -e "$held" ]; then
  for service in $(sort -u "$held"); do "start_$service" >/dev/null 2>&1; done
  rm -f "$held"
fi
exit 0

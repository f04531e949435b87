# Marks the disk as that of a prebuild, just before its snapshot. Set in the environment: BOBBIN_OF, the builder's
# sandbox. Runs in the sandbox's working directory, by any POSIX shell.
umask 077
rm -rf .bobbin/prebuild .bobbin/prebuilt
printf '%s\n' "$BOBBIN_OF" >.bobbin/prebuild

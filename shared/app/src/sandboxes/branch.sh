# Puts a branch into the copy of the repository beside the checkout, out of a pack that the worker has put into the
# sandbox. Set in the environment: BOBBIN_REF, its full name; BOBBIN_COMMIT, where it is; BOBBIN_PIECES, how many files
# the pack comes in. Runs in the sandbox's working directory, by any POSIX shell.
umask 077
store="$(pwd)/.bobbin/origin.git"
pieces="$(pwd)/.bobbin/carried"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
n=0
while [ "$n" -lt "$BOBBIN_PIECES" ]; do
  cat "$pieces/$n" || exit 1
  n=$((n + 1))
done | git -C "$store" index-pack --stdin --fix-thin >/dev/null 2>&1 || exit 1
rm -rf "$pieces"
git -C "$store" -c core.hooksPath=/dev/null update-ref "$BOBBIN_REF" "$BOBBIN_COMMIT" </dev/null >/dev/null 2>&1

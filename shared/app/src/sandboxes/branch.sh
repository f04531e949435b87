# Puts a branch into the copy of the repository beside the checkout, out of a pack that the worker has put into the
# sandbox. Set in the environment: BOBBIN_STORE, the name of that copy; BOBBIN_REF, its full name; BOBBIN_COMMIT, where it is; BOBBIN_PIECES, how many files
# the pack comes in. Runs in the sandbox's working directory, by any POSIX shell. unpack.sh comes first.
umask 077
store="$(pwd)/.bobbin/$BOBBIN_STORE"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
unpack "$store" "$(pwd)/.bobbin/carried" "$BOBBIN_PIECES" >/dev/null 2>&1 || exit 1
git -C "$store" -c core.hooksPath=/dev/null update-ref "$BOBBIN_REF" "$BOBBIN_COMMIT" </dev/null >/dev/null 2>&1

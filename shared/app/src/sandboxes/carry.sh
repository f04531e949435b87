# Makes the repository where the agent works out of packs that the worker has put into the sandbox. Set in the
# environment: BOBBIN_ORIGIN, its https address; BOBBIN_BRANCH, the branch, empty for a tag or a commit; BOBBIN_COMMIT,
# the commit, empty if there is none yet; BOBBIN_PIECES, how many files each pack comes in, or `look`. The ends of a
# history that is not whole stand in a file beside the packs. Runs in the sandbox's working directory, by any POSIX
# shell. What stands in `project` is whole: it comes there by one rename. left_out.sh and unpack.sh come first.
umask 077
root=$(pwd)
store="$root/.bobbin/origin.git"
pieces="$root/.bobbin/carried"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1
git_() { git -c credential.helper= -c core.hooksPath=/dev/null -c init.defaultBranch=main "$@" </dev/null; }
failed() { tail -n 8 "$1" | head -c 2000; exit 1; }
# The commit that was brought, how many there are if that is not all, and what is not there.
done_() {
  commit=$(git_ -C "$store" rev-parse -q --verify refs/bobbin/base) && printf 'commit\t%s\n' "$commit"
  [ -s "$store/shallow" ] && printf 'history\t%s\n' "$(git_ -C "$store" rev-list --count refs/bobbin/base)"
  left_out "$root/project"
  exit 0
}
command -v git >/dev/null 2>&1 || { echo "git is not installed in the sandbox's image"; exit 1; }
if [ -e "$root/project/.git" ]; then
  rm -rf "$pieces"
  [ "$(git -C "$root/project" config remote.origin.url </dev/null)" = "$BOBBIN_ORIGIN" ] && done_
  echo "another repository stands in its place"
  exit 1
fi
# What an earlier try left half done.
[ "$BOBBIN_PIECES" = look ] && { rm -rf "$pieces"; exit 9; }
mkdir -p "$root/.bobbin" || { echo "No space left on device"; exit 1; }
rm -rf "$store" "$root"/.bobbin/clone.*
side=$(mktemp -d "$root/.bobbin/clone.XXXXXX") || { echo "No space left on device"; exit 1; }
words="$side/words"
project() { git_ -C "$side/project" "$@" >"$words" 2>&1; }
git_ init --quiet --bare "$store" >"$words" 2>&1 || failed "$words"
git_ init --quiet "$side/project" >"$words" 2>&1 || failed "$words"
git_ -C "$store" symbolic-ref HEAD "refs/heads/${BOBBIN_BRANCH:-main}"
project symbolic-ref HEAD "refs/heads/${BOBBIN_BRANCH:-main}"
project config remote.origin.url "$BOBBIN_ORIGIN"
project config remote.origin.fetch "+refs/heads/*:refs/remotes/origin/*"
project config remote.origin.tagOpt --no-tags
project config "url.$store.insteadOf" "$BOBBIN_ORIGIN"
echo ".bobbin/" >>"$side/project/.git/info/exclude"
if [ -n "$BOBBIN_COMMIT" ]; then
  [ ! -s "$pieces/shallow" ] || cp "$pieces/shallow" "$store/shallow" || failed "$words"
  unpack "$store" "$pieces" $BOBBIN_PIECES >"$words" 2>&1 || failed "$words"
  for ref in refs/bobbin/base ${BOBBIN_BRANCH:+"refs/heads/$BOBBIN_BRANCH"}; do
    git_ -C "$store" update-ref "$ref" "$BOBBIN_COMMIT" >"$words" 2>&1 || failed "$words"
  done
  # The same files under two names, as `git clone` does it: the disk holds them once.
  for pack in "$store"/objects/pack/*; do
    ln "$pack" "$side/project/.git/objects/pack/" 2>/dev/null ||
      cp "$pack" "$side/project/.git/objects/pack/" 2>"$words" || failed "$words"
  done
  [ ! -s "$store/shallow" ] || cp "$store/shallow" "$side/project/.git/shallow" 2>"$words" || failed "$words"
  if [ -n "$BOBBIN_BRANCH" ]; then
    project update-ref "refs/remotes/origin/$BOBBIN_BRANCH" "$BOBBIN_COMMIT" || failed "$words"
    project symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$BOBBIN_BRANCH"
    project checkout --quiet -B "$BOBBIN_BRANCH" --track "origin/$BOBBIN_BRANCH" || failed "$words"
  else
    project checkout --quiet --detach "$BOBBIN_COMMIT" || failed "$words"
  fi
else
  # Diffs and reverts need a commit, and an empty repository has none.
  project -c user.name=Bobbin -c user.email=bobbin@localhost -c commit.gpgsign=false commit -q --allow-empty -m "Start" ||
    failed "$words"
fi
mkdir -p "$store/hooks"
printf '#!/bin/sh\necho "Bobbin pushes, when somebody presses Open pull request."\nexit 1\n' >"$store/hooks/pre-receive"
chmod 700 "$store/hooks/pre-receive"
rm -rf "$pieces"
mv -T "$side/project" "$root/project" || { [ -e "$root/project/.git" ] || exit 1; }
rm -rf "$side"
done_

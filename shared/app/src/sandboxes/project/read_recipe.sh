# Prints how a repository says that its project is made ready: files and names of the newest commit of its default
# branch. Set in the environment: BOBBIN_AT, where that commit is (`origin`, `base ID` or `brought BRANCH`);
# BOBBIN_WANTED, paths, one a line; BOBBIN_BYTES, of one file; BOBBIN_LOCKS, names of lock files, one a line;
# BOBBIN_SAID, what managers say instead of those files.
# Devcontainers in folders of their own come beside. Runs in the sandbox's working directory, by any POSIX shell.
# Nothing of the repository is run.
root=$(pwd -P)
# Before anything of the repository runs: what starts later may be its.
IFS= read -r stat </proc/self/stat 2>/dev/null || stat=
set -- ${stat##*) }
printf 'ticks %s\n' "${20:-0}"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
store="$root/project"
git_() {
  git -C "$store" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper= "$@" </dev/null 2>/dev/null
}
case "$BOBBIN_AT" in
  origin)
    name=refs/remotes/origin/HEAD
    git_ rev-parse -q --verify "$name^{commit}" >/dev/null ||
      { git_ fetch --quiet --depth 1 --no-tags origin HEAD >/dev/null && name=FETCH_HEAD; }
    ;;
  base\ *) name=${BOBBIN_AT#base } ;;
  brought\ *) store="$root/.bobbin/origin.git" name="refs/heads/${BOBBIN_AT#brought }" ;;
  *) exit 0 ;;
esac
commit=$(git_ rev-parse -q --verify "$name^{commit}") || exit 0
printf 'commit %s\n' "$commit"
git_ ls-tree --name-only "$commit" | head -n 500 | grep -v '^"' | sed 's/^/root /'
wanted() {
  printf '%s\n' "$BOBBIN_WANTED"
  git_ ls-tree -r --name-only "$commit" -- .devcontainer/ | grep '^[^"].*/.*/devcontainer.json$' | head -n 20
}
# Words of what says how the project is made ready that may be paths: its steps run what stands there. Tools read the
# files at the end without being told to.
named() {
  {
    printf '%s\n' "$BOBBIN_SAID"
    wanted | while IFS= read -r path; do git_ cat-file blob "$commit:$path" | head -c "$BOBBIN_BYTES"; done
  } | tr -c 'A-Za-z0-9._/-' '\n' | sed -e 's|^\./||' -e 's|/*$||' | grep '[./]' | grep -v -e '^[./-]*$' -e '^[/-]' -e '\.\.' | sort -u |
    head -n 200
  printf '%s\n' Makefile justfile package.json
}
# What they hold, and the lock files, whichever folder those are in.
locks=$({
  set -f
  git_ ls-tree "$commit" -- $(named) .bobbin/none | grep '^[0-9]* blob '
  git_ -c core.quotePath=false ls-tree -r "$commit" | awk -F '\t' -v names="$BOBBIN_LOCKS" '
    BEGIN { n = split(names, each, "\n"); for (i = 1; i <= n; i++) wanted[each[i]] = 1 }
    { name = $2; sub(/.*\//, "", name); if (name in wanted) print }'
} | git hash-object --stdin 2>/dev/null)
printf 'locks %s\n' "$locks"
wanted | while IFS= read -r path; do
  size=$(git_ cat-file -s "$commit:$path") || continue
  # One byte more than is read says that there is more.
  printf 'file %s %s ' "$size" "$path"
  git_ cat-file blob "$commit:$path" | head -c "$BOBBIN_BYTES" | base64 | tr -d '\n'
  printf '\n'
done

# Prints how a repository says that its project is made ready: files and names of the newest commit of its default
# branch. Set in the environment: BOBBIN_AT, where that commit is (`origin`, `base ID` or `brought BRANCH`);
# BOBBIN_FETCH_S, seconds for fetching it; BOBBIN_WANTED, paths, one a line; BOBBIN_BYTES, of one file; BOBBIN_LOCKS,
# names of lock files, and BOBBIN_BESIDE, other names of the top folder that count, one a line; BOBBIN_SAID, what
# managers say instead of those files.
# Devcontainers in folders of their own come beside. Runs in the sandbox's working directory, by any POSIX shell.
# Nothing of the repository is run.
root=$(pwd -P)
# Before anything of the repository runs: what starts later may be its.
IFS= read -r stat </proc/self/stat 2>/dev/null || stat=
set -- ${stat##*) }
printf 'ticks %s\n' "${20:-0}"
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true GIT_CONFIG_NOSYSTEM=1 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
store="$root/project" within=
asked() {
  $within git -C "$store" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper= "$@" 2>/dev/null
}
git_() { asked "$@" </dev/null; }
# Into a repository of its own, with the settings of the checkout: a commit without its history would cut that of the
# checkout's branches.
fetch() {
  config=$(git_ rev-parse --git-path config)
  case "$config" in /*) ;; *) config="$store/$config" ;; esac
  store="$root/.bobbin/recipe.git"
  rm -rf "$store"
  trap 'rm -rf "$root/.bobbin/recipe.git"' EXIT
  mkdir -p "$store" && git_ init --quiet --bare && git_ config include.path "$config" || return 1
  if command -v timeout >/dev/null 2>&1; then within="timeout $BOBBIN_FETCH_S"; fi
  git_ fetch --quiet --depth 1 --no-tags origin HEAD >/dev/null
  status=$?
  within=
  return $status
}
case "$BOBBIN_AT" in
  origin)
    name=refs/remotes/origin/HEAD
    git_ rev-parse -q --verify "$name^{commit}" >/dev/null || { fetch && name=FETCH_HEAD; }
    ;;
  base\ *) name=${BOBBIN_AT#base } ;;
  brought\ *) store="$root/.bobbin/origin.git" name="refs/heads/${BOBBIN_AT#brought }" ;;
  *) exit 0 ;;
esac
commit=$(git_ rev-parse -q --verify "$name^{commit}") || exit 0
printf 'commit %s\n' "$commit"
git_ ls-tree --name-only "$commit" | grep -Fx -e "$BOBBIN_LOCKS" -e "$BOBBIN_BESIDE" | sed 's/^/root /'
wanted() {
  printf '%s\n' "$BOBBIN_WANTED"
  git_ ls-tree -r --name-only "$commit" -- .devcontainer/ | grep '^[^"].*/.*/devcontainer.json$' | head -n 20
}
# What stands at paths, behind links inside of the repository: `blob ID SIZE` for a file.
behind() { asked cat-file --batch-check='%(objecttype) %(objectname) %(objectsize)' --follow-symlinks; }
# Calls a command with the path of each wanted file, its id and its size, or with the path alone of a link to no file.
each_wanted() {
  wanted | while IFS= read -r path; do
    set -- "$1" $(printf '%s:%s\n' "$commit" "$path" | behind | head -n 1)
    if [ "$2" = blob ]; then "$1" "$path" "$3" "$4"
    elif git_ ls-tree "$commit" -- "$path" | grep -q '^120000 '; then "$1" "$path"; fi
  done
}
text() { [ -z "$2" ] || git_ cat-file blob "$2" | head -c "$BOBBIN_BYTES"; }
# Words of what says how the project is made ready that may be names of files: its steps run what stands there. Those
# with a point or a slash may be paths, though not where a step only goes into a folder. Tools read the files at the end
# without being told to.
named() {
  {
    printf '%s\n' "$BOBBIN_SAID"
    each_wanted text
  } | sed -e 's/working-directory"*: *[^ ]*/ /' -e 's/^cd  *[^ ;&|)"]*/ /' \
    -e 's/[^A-Za-z0-9_./-]cd  *[^ ;&|)"]*/ /g' |
    tr -c 'A-Za-z0-9._/-' '\n' | grep -v -e '^[./-]*$' -e '^-' | sort -u | head -n 5000
  printf '%s\n' Makefile justfile package.json
}
# The files of these names and the lock files, whichever folder those are in, and the folders of these paths.
counted=$({
  printf '%s\n' "$BOBBIN_LOCKS"
  named
  git_ -c core.quotePath=false ls-tree -r -t "$commit"
} | awk -F '\t' '
  NF < 2 && /[.\/]/ { sub(/^(\.*\/)+/, ""); sub(/\/+$/, ""); if ($0 != "") path[$0] }
  NF < 2 { sub(/.*\//, ""); name[$0]; next }
  / tree / { for (at = $2; !(at in path) && sub(/^[^\/]*\//, "", at); ); if (at in path) print; next }
  { at = $2; sub(/.*\//, "", at); if (at in name) print }')
locks=$({
  printf '%s\n' "$counted"
  # Of a link, what it leads to.
  printf '%s\n' "$counted" | awk -F '\t' -v at="$commit:" '/^120000 / { print at $2 }' | behind | sed "s/^$commit://"
} | git hash-object --stdin 2>/dev/null)
printf 'locks %s\n' "$locks"
# One byte more than is read says that there is more.
told() {
  if [ -z "$2" ]; then
    printf 'link %s\n' "$1"
  else
    printf 'file %s %s ' "$3" "$1"
    text "$@" | base64 | tr -d '\n'
    printf '\n'
  fi
}
each_wanted told

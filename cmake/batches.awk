# SPDX-License-Identifier: Apache-2.0
# Sorts sources into batches that one compiler run can take together, and prints for each
# "<batch> <path>". Sources of one batch lie in one folder, together have at most `lines` lines, and
# no name that one of them declares for itself, in an unnamed namespace or as a macro, occurs in
# another but as a member: not as a second definition, nor as what it would hide. Nor as a type in
# the other's headers, or a constant of a function there; nor does it declare a function of the C
# library that headers call.
#
#   awk -v lines=3000 -v root=<sources of the project> -f batches.awk <source>...
#
# This understands what clang-format lays out: a line that begins with a name in its first column,
# within namespaces, is a declaration.

BEGIN { headers_call = " accept bind close connect listen open poll read recv send stat write " }
FNR == 1 { begin_file() }
/^namespace \{/ { own = 1 }
/^}  \/\/ namespace$/ { own = 0 }
/^#include "/ { included[file] = included[file] " " $2 }
/^namespace [a-z_:]+ \{/ && space[file] == "" { space[file] = $2 }
{ sub(/\/\/.*/, ""); gsub(/"([^"\\]|\\.)*"/, "\"\"") }
{ note_words(without_members($0)) }
/^using [A-Za-z0-9_:]+::[A-Za-z0-9_]+;/ { note_using($0) }
(own && /^[A-Za-z_]/) || /^#define / { note_declaration($0) }
{ ++length_of[file] }
END {
  for (i = 1; i <= files; ++i) note_headers(order[i], included[order[i]])
  for (i = 1; i <= files; ++i) place(order[i])
}

function begin_file() {
  file = FILENAME
  order[++files] = file
  own = 0
}

# What is named as part of something else is no name that a declaration beside it would clash with.
function without_members(text) {
  gsub(/(\.|->|::)[A-Za-z_][A-Za-z0-9_]*/, " ", text)
  return text
}

function note_words(text, n, i, parts) {
  n = split(text, parts, /[^A-Za-z0-9_]+/)
  for (i = 1; i <= n; ++i) has[file, parts[i]] = 1
}

# Notes the types that a source's headers, and theirs, speak of, and the constants that functions of
# theirs have for themselves.
function note_headers(source, names, n, i, parts) {
  n = split(names, parts, /[ "]+/)
  for (i = 1; i <= n; ++i) {
    if (parts[i] == "" || ((source, parts[i]) in reached)) continue
    reached[source, parts[i]] = 1
    if (!(parts[i] in types)) read_header(parts[i])
    note_types(source, types[parts[i]])
    if (space[parts[i]] != "" && space[parts[i]] == space[source]) {
      note_plain(source, plain[parts[i]])
    }
    note_headers(source, included[parts[i]])
  }
}

function note_types(source, names, n, i, parts) {
  n = split(names, parts, " ")
  for (i = 1; i <= n; ++i) speaks_of[source, parts[i]] = 1
}

# And those that headers of its own namespace speak of by that name alone.
function note_plain(source, names, n, i, parts) {
  n = split(names, parts, " ")
  for (i = 1; i <= n; ++i) plain_in[source, parts[i]] = 1
}

function read_header(header, path, text, once, plainly, state, words) {
  types[header] = ""
  path = root "/src/" header
  if ((state = (getline text < path)) <= 0) path = root "/include/" header
  if (state <= 0 && (state = (getline text < path)) <= 0) path = root "/" header
  if (state <= 0) state = (getline text < path)
  for (; state > 0; state = (getline text < path)) {
    if (text ~ /^#include "/) included[header] = included[header] " " substr(text, 10)
    if (space[header] == "" && text ~ /^namespace [a-z_:]+ \{/) {
      split(text, words, " ")
      space[header] = words[2]
    }
    sub(/\/\/.*/, "", text)
    if (text ~ /^  +const/ && match(text, /k[A-Z][A-Za-z0-9]*/)) {
      types[header] = types[header] " " substr(text, RSTART, RLENGTH)
    }
    types[header] = types[header] new_types(text, once)
    plain[header] = plain[header] new_types(without_members(text), plainly)
  }
  close(path)
}

# The names of types in a text that are not among those.
function new_types(text, once, n, i, parts, found) {
  n = split(text, parts, /[^A-Za-z0-9_]+/)
  for (i = 1; i <= n; ++i) {
    if (parts[i] !~ /^[A-Z]/ || (parts[i] in once)) continue
    once[parts[i]] = 1
    found = found " " parts[i]
  }
  return found
}

function note_declaration(text, name) {
  name = declared(text)
  if (name == "") return
  globals[file] = globals[file] name " "
  if (index(headers_call, " " name " ")) alone[file] = 1
}

# The same using declaration in two sources is no clash.
function note_using(text) {
  sub(/^using /, "", text)
  sub(/;.*/, "", text)
  using[file, text] = 1
  usings[file] = usings[file] text " "
}

# The name that a line declares, or nothing: it stands before the first of ( = { ; [ , and after a
# type, and is not a member defined outside of its class.
function declared(text) {
  if (text ~ /^(namespace|template|return|case|public|private|protected)\>?[^A-Za-z0-9_]/) return ""
  if (text ~ /^(TEST|TYPED_TEST|INSTANTIATE|static_assert|using namespace|extern)/) return ""
  if (text ~ /^using (enum )?[A-Za-z0-9_:]+;/) return ""
  if (sub(/^#define /, "", text)) {
    sub(/[^A-Za-z0-9_].*/, "", text)
    return text
  }
  sub(/ : .*/, "", text)  # bases
  sub(/ final( |$).*/, "", text)
  sub(/[(={;\[].*/, "", text)
  sub(/[ ]+$/, "", text)
  if (text !~ /[ &*>]/) return ""
  if (!match(text, /[ &*][A-Za-z_][A-Za-z0-9_]*$/)) return ""
  return substr(text, RSTART + 1)
}

function folder_of(path) {
  sub(/\/[^\/]*$/, "", path)
  return path
}

function clash(a, b) {
  return alone[a] || alone[b] || occurs(globals[a], b) || occurs(globals[b], a) ||
    used_otherwise(usings[a], b) || used_otherwise(usings[b], a)
}

function occurs(names, other, n, i, parts) {
  n = split(names, parts, " ")
  for (i = 1; i <= n; ++i) {
    if (((other, parts[i]) in has) || ((other, parts[i]) in speaks_of)) return 1
  }
  return 0
}

# Whether a name of these using declarations means something else in the other: in its own text, or
# in a header of its that would come after them.
function used_otherwise(names, other, n, i, parts, name) {
  n = split(names, parts, " ")
  for (i = 1; i <= n; ++i) {
    name = parts[i]
    sub(/.*::/, "", name)
    if (((other, parts[i]) in using)) continue
    if (((other, name) in has) || ((other, name) in plain_in)) return 1
  }
  return 0
}

function fits(path, batch, n, i, parts) {
  if (folder[batch] != folder_of(path)) return 0
  if (size[batch] + length_of[path] > lines) return 0
  n = split(members[batch], parts, "\n")
  for (i = 1; i <= n; ++i) {
    if (clash(parts[i], path)) return 0
  }
  return 1
}

function place(path, batch) {
  for (batch = 1; batch <= batches; ++batch) {
    if (fits(path, batch)) break
  }
  if (batch > batches) {
    ++batches
    folder[batch] = folder_of(path)
  } else {
    members[batch] = members[batch] "\n"
  }
  members[batch] = members[batch] path
  size[batch] += length_of[path]
  print batch, path
}

# SPDX-License-Identifier: Apache-2.0
# Says which headers a precompiled header of these sources should hold, one in a line as #include
# takes it: those of the project and of the C++ library that a part of the sources include, be it
# by way of others. Headers of other libraries are left out, for some read macros of their includer.
#
#   awk -v part=0.3 -v root=<sources of the project> -f precompile.awk <source>...

BEGIN { is_header = "^#include (\"[^\"]+\\.hpp\"|<[a-z_]+>)" }
FNR == 1 { ++sources }
$0 ~ is_header { include($2) }
END { for (header in includes) if (includes[header] >= part * sources) print header | "sort" }

function include(header, n, i, parts) {
  if ((FILENAME, header) in seen) return
  seen[FILENAME, header] = 1
  ++includes[header]
  if (!(header in inside)) read_header(header)
  n = split(inside[header], parts, " ")
  for (i = 1; i <= n; ++i) include(parts[i])
}

function read_header(header, name, path, text, n, i, parts, folders) {
  inside[header] = ""
  if (header !~ /^"/) return
  name = substr(header, 2, length(header) - 2)
  n = split("/src/ /include/ /", folders, " ")
  for (i = 1; i <= n; ++i) {
    path = root folders[i] name
    while ((getline text < path) > 0) {
      if (text ~ is_header) {
        split(text, parts, " ")
        inside[header] = inside[header] " " parts[2]
      }
    }
    close(path)
  }
}

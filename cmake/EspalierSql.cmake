# SPDX-License-Identifier: Apache-2.0
# What the queries of the command are read with: PostgreSQL's parser, as a library. Nothing else
# links it.
find_path(ESPALIER_PG_QUERY_INCLUDE_DIR pg_query.h)
find_library(ESPALIER_PG_QUERY_LIBRARY pg_query)
mark_as_advanced(ESPALIER_PG_QUERY_INCLUDE_DIR ESPALIER_PG_QUERY_LIBRARY)
if(NOT ESPALIER_PG_QUERY_INCLUDE_DIR OR NOT ESPALIER_PG_QUERY_LIBRARY)
  message(FATAL_ERROR "PostgreSQL's parser is missing (pg_query.h). "
                      "Debian's package libpg-query-dev has it.")
endif()
add_library(espalier_pg_query INTERFACE)
target_include_directories(espalier_pg_query SYSTEM INTERFACE ${ESPALIER_PG_QUERY_INCLUDE_DIR})
target_link_libraries(espalier_pg_query INTERFACE ${ESPALIER_PG_QUERY_LIBRARY})

// SPDX-License-Identifier: Apache-2.0
// Descriptors 0, 1 and 2 are standard input, output and error to all that a program calls, be they
// open or not: where one is closed, what is opened next takes its number, and messages go there.
#pragma once

namespace espalier::base {

/// Opens those of the three that are closed, so that what reads or writes them meets an error, as
/// it would where they are closed. Ends the process where that cannot be. Call it first in main().
void open_standard_descriptors();

/// The number of a descriptor that was made just now; where it is that of a standard one, of a
/// duplicate that is none, and the other is closed. Where there is no number left, it stays.
[[nodiscard]] int above_standard_descriptors(int number);

}  // namespace espalier::base

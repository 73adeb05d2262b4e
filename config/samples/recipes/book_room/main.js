// Refuses before it writes. A schema says what a value looks like; what two values
// mean together is said here, in words for whoever asked.
function main(input) {
  const { room, from, to } = input;
  if (to <= from) throw new Error("the end, " + to + ", is not after the beginning, " + from);
  if (to - from > 8) throw new Error("a room is booked for at most 8 hours");
  const taken = tools.call("list_bookings", { room, day: input.day }).bookings;
  const clash = taken.find((b) => b.from < to && from < b.to);
  if (clash) throw new Error("room " + room + " is taken from " + clash.from + " to " + clash.to);
  return { booking: tools.call("create_booking", { room, day: input.day, from, to }).id };
}

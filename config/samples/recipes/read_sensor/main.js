// Tries again around a tool that fails. Only ToolFailed and InvalidArguments can be
// caught, and other arguments would be needed after the latter.
const ATTEMPTS = 3;

function main(input) {
  let last;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const answer = tools.call("read_sensor_value", { sensor: input.sensor });
      return { value: answer.value, attempts: attempt };
    } catch (e) {
      if (e.code !== "ToolFailed") throw e;
      last = e;
    }
  }
  throw new Error("the sensor did not answer in " + ATTEMPTS + " attempts: " + last.message);
}

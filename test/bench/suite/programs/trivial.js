// want: {"ok":true}
function main(input) {
  return { ok: true };
}

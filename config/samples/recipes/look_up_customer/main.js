// Looks up one customer. What comes out has one form, whatever the source sends.
function main(input) {
  const found = tools.call("get_customer", { id: input.id.trim().toUpperCase() });
  return {
    id: found.id,
    name: found.name.trim().replace(/\s+/g, " "),
    email: found.email ? found.email.trim().toLowerCase() : null,
    country: (found.country || "unknown").toLowerCase(),
  };
}

// Writes only what is not so already. put_service_owner is to be granted as
// Idempotent: setting the same owner twice is the same as once.
function main(input) {
  const service = tools.call("get_service", { name: input.service });
  if (service.owner === input.owner) return { changed: false, before: service.owner };
  tools.call("put_service_owner", { name: input.service, owner: input.owner, version: service.version });
  return { changed: true, before: service.owner ?? null };
}

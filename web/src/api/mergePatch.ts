import { isObject, writeJson } from "@/json";

type Patch = Record<string, unknown>;

/** Returns the merge patch (RFC 7396) from one object to another: removed fields become null. */
export function mergePatch(before: object, after: object): Patch {
  const [old, next] = [before as Patch, after as Patch];
  const patch: Patch = {};
  for (const name of new Set([...Object.keys(old), ...Object.keys(next)])) {
    if (writeJson(old[name]) === writeJson(next[name])) continue;
    patch[name] =
      isObject(old[name]) && isObject(next[name])
        ? mergePatch(old[name], next[name])
        : (next[name] ?? null);
  }
  return patch;
}

/** Returns a value after a merge patch. */
export function applyMergePatch(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Patch = isObject(value) ? { ...value } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete result[name];
    else result[name] = applyMergePatch(result[name], change);
  }
  return result;
}

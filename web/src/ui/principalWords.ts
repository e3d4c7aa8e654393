import type { PrincipalDocument } from "@/api/types";

/** The fields of a principal, as the API and as events have them. */
type Principal = Pick<PrincipalDocument, "kind" | "id" | "name"> & { by?: Principal };

/** "the operator", "token “crm”", "a schedule trigger" */
export function principalWords({ kind, id, name, by }: Principal): string {
  switch (kind) {
    case "operator":
      return "the operator, with the token";
    case "session":
      return "the operator, in a browser";
    case "token":
      return `token “${name ?? id}”`;
    case "trigger":
      return name ? `a ${name} trigger` : "a trigger";
    case "chat":
      return "a chat";
    case "local":
      return "a local user";
    case "library":
      return "a Python program";
    case "link":
      if (by) return `a link of ${principalWords(by)}`;
      return name ? `a link sent to “${name}”` : "a link";
  }
}

import { expect, test } from "vitest";
import { principalWords } from "./principalWords";

test("a principal is named by what a person knows of it", () => {
  const words = [
    { kind: "operator" },
    { kind: "session", id: "5f2d" },
    { kind: "token", id: "t1", name: "crm" },
    { kind: "token", id: "t1" },
    { kind: "trigger", id: "h1", name: "schedule" },
    { kind: "chat", id: "c1" },
    { kind: "local" },
    { kind: "library" },
    { kind: "link", id: "l1", by: { kind: "token", id: "t1", name: "crm" } },
    { kind: "link", id: "l1", name: "ops" },
    { kind: "link", id: "l1" },
  ] as const;
  expect(words.map(principalWords)).toEqual([
    "the operator, with the token",
    "the operator, in a browser",
    "token “crm”",
    "token “t1”",
    "a schedule trigger",
    "a chat",
    "a local user",
    "a Python program",
    "a link of token “crm”",
    "a link sent to “ops”",
    "a link",
  ]);
});

import { expect, test } from "vitest";
import { decisionWords } from "@/inspector/answerWords";

test("what was decided is said as what has happened; the own words of an action stay", () => {
  const said = ["approve", "reject", "raise", "stop", "ask_again"].map(decisionWords);
  expect(said).toEqual(["Approved", "Rejected", "Raised", "Stopped", "Ask again"]);
  expect(decisionWords(null)).toBe("Answered");
});

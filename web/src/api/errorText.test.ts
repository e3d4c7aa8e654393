import { expect, test } from "vitest";
import { errorText } from "@/api/errorText";
import { ApiError } from "@/api/http";

function problem(detail: string, hint: string | null) {
  return new ApiError("code", detail, 422, { title: "", status: 422, code: "code", detail, hint });
}

test("the service's sentence comes first, then the way out", () => {
  const error = problem("no execution 'x'", "list them with planwave list");
  expect(errorText(error)).toBe("No execution 'x'. List them with planwave list.");
  expect(errorText(problem("Nothing is there.", null))).toBe("Nothing is there.");
});

test("a name at the beginning is not changed", () => {
  expect(errorText(problem("openai (gpt-4o) refused the key", null))).toBe(
    "openai (gpt-4o) refused the key.",
  );
});

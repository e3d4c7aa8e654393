import { expect, test } from "vitest";
import type { UsageData, UsageResponse } from "@/api/types";
import { addUsage, tokenWords } from "@/stream/usage";
import { formatUsd } from "@/ui/format";

const NONE: UsageResponse = {
  calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: null,
  estimated: false,
};
const CALL = {
  provider: "anthropic",
  model: "claude-haiku-4-5",
  input_tokens: 8252,
  output_tokens: 10,
};
const WRITE: UsageData = { ...CALL, cache_write_tokens: 8250, cost_usd: 0.0103645 };
const READ: UsageData = { ...CALL, cache_read_tokens: 8250, cost_usd: 0.000877 };
const READS = Array.from({ length: 6 }, () => READ);

// The numbers of tests/e2e/server/test_prompt_cache.py, where the service and the command line show the same.
test("tokens of a cache count as such, and the cost is the sum of the calls, in any order", () => {
  for (const calls of [
    [WRITE, ...READS],
    [...READS, WRITE],
  ]) {
    const total = calls.reduce(addUsage, NONE);
    expect(total).toEqual({
      calls: 7,
      input_tokens: 57_764,
      output_tokens: 70,
      cost_usd: 0.0156265,
      estimated: false,
      cache_read_tokens: 49_500,
      cache_write_tokens: 8_250,
    });
    expect(tokenWords(total)).toBe("57,764 in (of which 49,500 from the cache), 70 out");
    expect(formatUsd(Number(total.cost_usd))).toBe("$0.0156");
  }
});

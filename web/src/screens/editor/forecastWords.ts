import type { ForecastResponse } from "@/api/types";
import { formatAmount, formatRange, formatUsd } from "@/ui/format";

/** Returns what a plan will take, in words. */
export function forecastWords(forecast: ForecastResponse | null | undefined): string[] {
  if (!forecast) return [];
  const { waves, calls, tokens, cost_usd, critical_path: path } = forecast;
  return [
    formatAmount(waves, "wave"),
    `longest path ${formatAmount(path.length, "step")}`,
    formatAmount(calls, "model call") + (forecast.at_least ? " or more" : ""),
    ...(Number(tokens.high) > 0 ? [tokensInWords(forecast, " tokens")] : []),
    ...(cost_usd && Number(cost_usd.high) > 0
      ? [`${formatUsd(cost_usd.low)} to ${formatUsd(cost_usd.high)}`]
      : []),
  ];
}

/** Returns the tokens of a forecast, with the tools that it leaves out. */
export function tokensInWords(forecast: ForecastResponse, unit = ""): string {
  const { tokens, uncounted_tools: tools = [] } = forecast;
  const without = tools.length > 0 ? ` without the tools of ${tools.join(", ")}` : "";
  return `${formatRange(tokens.low, tokens.high)}${unit}${without}`;
}

import type { DiagnosticResponse, ForecastResponse, GraphDocument } from "@/api/types";
import { cardText } from "@/canvas/cardText";
import type { PlannedEdge, PlannedStep } from "@/canvas/PlanLanes";
import { writeJson } from "@/json";
import { tokensInWords } from "@/screens/editor/forecastWords";
import { formatAmount, formatUsd } from "@/ui/format";

/** A plan as it is shown, whether it is written or still being written. */
export interface PlanView {
  steps: readonly PlannedStep[];
  edges: readonly PlannedEdge[];
  /** The reply of the model so far, or the graph. */
  json: string;
}

/** Returns the view of a written plan. */
export function viewOfPlan(plan: GraphDocument): PlanView {
  return {
    steps: plan.nodes.map((node) => ({
      id: node.id,
      name: node.name || node.id,
      type: node.type,
      description: cardText(node),
    })),
    edges: plan.edges.map(({ source, target, data }) => ({
      source,
      target,
      isLink: data.channel === "link",
    })),
    json: writeJson({ nodes: plan.nodes, edges: plan.edges }, 2),
  };
}

export interface Stat {
  label: string;
  value: string;
}

/** Returns the forecast of a stored plan; null of a draft with errors, which has none. */
export function readForecast(stored: unknown): ForecastResponse | null {
  const isForecast = typeof stored === "object" && stored !== null && "tokens" in stored;
  return isForecast ? (stored as ForecastResponse) : null;
}

/** Returns the forecast in words; `embedded`: the model runs on this machine. */
export function forecastStats(forecast: ForecastResponse, embedded: boolean): Stat[] {
  const { waves, calls, cost_usd: cost, critical_path: path } = forecast;
  return [
    { label: "Waves", value: String(waves) },
    { label: "Model calls", value: forecast.at_least ? `${calls} or more` : String(calls) },
    { label: "Tokens", value: tokensInWords(forecast) },
    { label: "Cost", value: costInWords(cost, embedded) },
    { label: "Longest path", value: formatAmount(path.length, "step") },
  ];
}

function costInWords(cost: ForecastResponse["cost_usd"], embedded: boolean): string {
  if (cost === null) return "price not known";
  if (Number(cost.high) <= 0) return embedded ? "free, runs here" : "free";
  const [low, high] = [formatUsd(cost.low), formatUsd(cost.high)];
  return low === high ? high : `${low} to ${high}`;
}

/** Returns the ids of the steps that have an error or a warning. */
export function troubledSteps(diagnostics: readonly DiagnosticResponse[]): Set<string> {
  return new Set(
    diagnostics.flatMap(({ node, severity }) => (node && severity === "error" ? [node] : [])),
  );
}

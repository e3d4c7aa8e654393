import type {
  AdditionDocument,
  GraphDocument,
  OpenRequestResponse,
  ProposedDifference,
} from "@/api/types";
import { isObject } from "@/json";
import { Differences, Reach } from "@/screens/editor/RevisionDiff";
import { readForecast } from "@/screens/goal/planView";
import { ForecastStats } from "./ForecastStats";
import { PLAN_CHANGE } from "./requestWords";

type Change = {
  answer: string;
  difference: ProposedDifference;
  additions: AdditionDocument[];
  forecast?: unknown;
};

const NO_GRAPH: GraphDocument = { nodes: [], edges: [] };

type ChangeRequestProps = {
  request: Pick<OpenRequestResponse, "request">;
  /** What the run runs, for the names of its steps; null until it is known. */
  graph: GraphDocument | null;
};

/** A change of the plan of a run whose approval is asked: every step and field, and all that the plan would reach and take by it. */
export function ChangeRequest({ request, graph }: ChangeRequestProps) {
  const change = readChange(request);
  if (change === null) return null;
  const forecast = readForecast(change.forecast);
  const lost = change.additions.filter(({ kind }) => kind === "safeguard");
  const reached = change.additions.filter(({ kind }) => kind !== "safeguard");
  return (
    <>
      {change.answer && <p dir="auto">{change.answer}</p>}
      <Reach words="It would do or reach what the plan does not yet:" additions={reached} />
      <Reach words="It would lose what guards the plan:" additions={lost} />
      <Differences diff={change.difference} graph={graph ?? NO_GRAPH} isWhole />
      {forecast && (
        <>
          <p>The steps that have not begun would take:</p>
          <ForecastStats forecast={forecast} />
        </>
      )}
    </>
  );
}

/** Reads the request of a run about a change; null where it has none that can be shown. */
function readChange({ request }: Pick<OpenRequestResponse, "request">): Change | null {
  if (!isObject(request) || request.kind !== PLAN_CHANGE || !isObject(request.difference))
    return null;
  return { answer: String(request.answer ?? ""), ...request } as unknown as Change;
}

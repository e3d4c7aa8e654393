import { Link } from "react-router";
import { useNode } from "@/api/queries";
import type { PendingRequest } from "@/api/types";
import { actionLabel } from "@/inspector/requestFields";
import { formatTime } from "@/ui/format";
import { Note } from "@/ui/Note";

/** What somebody else has said meanwhile, as far as it is known. */
export function GivenAnswer({ request }: { request: PendingRequest }) {
  const { path } = request;
  const node = useNode(request.execution_id, path ?? "", path !== null).data;
  const answer = node?.answers.find((each) => each.request_id === request.request_id);
  return (
    <Note alert>
      {answer
        ? wordsOf(answer)
        : "This takes no answer any more. Somebody was faster, or the run has ended."}{" "}
      <Link to={`/runs/${request.execution_id}`}>Open the run</Link>
    </Note>
  );
}

function wordsOf({ by, at, decision, note }: Record<string, unknown>): string {
  const said = typeof decision === "string" ? `“${actionLabel(decision)}”` : "an answer";
  const time = typeof at === "string" ? ` at ${formatTime(new Date(at), true)}` : "";
  const why = typeof note === "string" && note ? ` The note says: “${note}”.` : "";
  if (by === "person") return `Somebody was faster: ${said} was given${time}.${why}`;
  return `The time was over: ${said} was taken${time}.${why}`;
}

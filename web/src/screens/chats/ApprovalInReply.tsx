import { useQuery } from "@tanstack/react-query";
import { call } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import { OpenRequest } from "@/screens/run/OpenRequest";
import type { ApprovalBlock, ApprovalState } from "@/stream/chat/blocks";
import { fieldOf } from "@/stream/json";
import { Skeleton } from "@/ui/Skeleton";
import { Status, type StatusName } from "@/ui/Status";
import { useNow } from "@/ui/useNow";
import styles from "./ApprovalInReply.module.css";

const LOOKS: Readonly<Record<ApprovalState, readonly [StatusName, string]>> = {
  open: ["waiting", "Waiting for you"],
  approved: ["completed", "Approved"],
  rejected: ["cancelled", "Rejected"],
  answered: ["completed", "Answered"],
  timeout: ["cancelled", "Nobody answered in time"],
  closed: ["cancelled", "Not needed any more"],
};

/** A question to a person inside a reply: its form while it is open, then what was decided. */
export function ApprovalInReply({ block }: { block: ApprovalBlock }) {
  const [status, words] = LOOKS[block.status];
  const note = fieldOf(block.answer, "note");
  return (
    <section className={styles.approval} data-open={block.status === "open"} aria-label={words}>
      <header className={styles.header}>
        <Status status={status}>{words}</Status>
        <b>{block.tool.toolName || block.tool.summary}</b>
      </header>
      {block.status === "open" && <Question block={block} />}
      {typeof note === "string" && note && <p className={styles.note}>{note}</p>}
    </section>
  );
}

/** The form is that of the run's own request, so nothing about it is known twice. */
function Question({ block: { executionId, requestId } }: { block: ApprovalBlock }) {
  const now = useNow();
  const query = useQuery({
    queryKey: queryKeys.executionRequests(executionId),
    queryFn: ({ signal }) => call("listRequests", { path: { execution_id: executionId }, signal }),
  });
  const request = query.data?.requests.find((each) => each.request_id === requestId);
  if (query.isPending) return <Skeleton label="Loading the question" lines={2} />;
  if (request === undefined) return <p className={styles.note}>It was answered.</p>;
  return <OpenRequest executionId={executionId} request={request} now={now} />;
}

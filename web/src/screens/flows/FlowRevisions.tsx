import { useRevisions } from "@/api/queries";
import type { FlowResponse } from "@/api/types";
import { formatAmount, formatMoment } from "@/ui/format";
import styles from "./FlowScreen.module.css";

type FlowRevisionsProps = {
  flow: FlowResponse;
  /** The revision that is looked at. */
  shown: number;
  onShow: (revision: number) => void;
};

/** The newest revisions of a flow: who made each, and which one callers start. */
export function FlowRevisions({ flow, shown, onShow }: FlowRevisionsProps) {
  const revisions = useRevisions(flow.plan_id).data?.revisions ?? [];
  return (
    <ol className={styles.versions} aria-label="Revisions">
      {revisions.map((each) => (
        <li key={each.revision}>
          <button
            type="button"
            aria-pressed={each.revision === shown}
            title={each.note || undefined}
            onClick={() => onShow(each.revision)}
          >
            <b>Revision {each.revision}</b>
            <span>{roleOf(each, flow.live_revision)}</span>
            <span>{formatAmount(each.node_count, "step")}</span>
            <span>{formatMoment(new Date(each.created_at))}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function roleOf(each: { revision: number; error_count: number }, live: number | null): string {
  if (each.revision === live) return "present";
  return each.error_count > 0 ? "draft" : "";
}

import { useFlowVersions } from "@/api/queries";
import { Button } from "@/ui/Button";
import { formatAmount, formatMoment } from "@/ui/format";
import styles from "./FlowScreen.module.css";

type FlowVersionsProps = {
  flowId: string;
  /** The version that the flow has now, and the one that is looked at. */
  current: string;
  shown: string;
  onShow: (version: string) => void;
};

/** All contents that a flow has had, newest first. */
export function FlowVersions({ flowId, current, shown, onShow }: FlowVersionsProps) {
  const query = useFlowVersions(flowId);
  const versions = query.data?.pages.flatMap((page) => page.versions) ?? [];
  return (
    <>
      <ol className={styles.versions} aria-label="Versions">
        {versions.map((each) => (
          <li key={each.version}>
            <button
              type="button"
              aria-pressed={each.version === shown}
              onClick={() => onShow(each.version)}
            >
              <b>Revision {each.revision}</b>
              <span>{each.version === current ? "present" : ""}</span>
              <span>{formatAmount(each.node_count, "step")}</span>
              <span>{formatMoment(new Date(each.created_at))}</span>
            </button>
          </li>
        ))}
      </ol>
      {query.hasNextPage && (
        <Button small onClick={() => void query.fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
}

import { useExplain } from "@/api/queries";
import { formatAmount } from "@/ui/format";
import { Loaded } from "./Loaded";
import type { PartProps } from "./part";
import styles from "./parts.module.css";
import { Text } from "./Text";

type Arrival = {
  edge?: string;
  source?: string;
  sourceName?: string;
  sourceHandle?: string;
  targetHandle?: string;
  text?: string;
};

type InputTabProps = {
  executionId: string;
  node: Pick<PartProps["node"], "path">;
  onSelect: (path: string) => void;
};

/** Each text that came in, and the step that it came from. */
export function InputTab({ executionId, node, onSelect }: InputTabProps) {
  const explanation = useExplain(executionId, node.path);
  return (
    <Loaded query={explanation} label="Loading what came in">
      {({ inputs, reason }) => {
        const arrivals = Object.entries(inputs).flatMap(([handle, input]) =>
          arrivalsOf(input).map((arrival) => ({ targetHandle: handle, ...arrival })),
        );
        if (arrivals.length === 0) return <p className={styles.quiet}>Nothing came in. {reason}</p>;
        return (
          <>
            <p className={styles.quiet}>{formatAmount(arrivals.length, "text")} came in.</p>
            {arrivals.map((arrival) => (
              <article className={styles.box} key={arrival.edge ?? arrival.source}>
                <header>
                  <b>{arrival.sourceName ?? arrival.source ?? "Given"}</b>
                  <span>
                    {arrival.sourceHandle ?? "output"} → {arrival.targetHandle}
                  </span>
                  <span className={styles.size}>{sizeOf(arrival.text ?? "")}</span>
                  {arrival.source && (
                    <button
                      type="button"
                      onClick={() => onSelect(siblingOf(node.path, arrival.source))}
                    >
                      Open
                    </button>
                  )}
                </header>
                <Text text={arrival.text ?? ""} />
              </article>
            ))}
          </>
        );
      }}
    </Loaded>
  );
}

function sizeOf(text: string): string {
  return formatAmount(text.trim() === "" ? 0 : text.trim().split(/\s+/).length, "word");
}

function arrivalsOf(input: Record<string, unknown>): Arrival[] {
  return Array.isArray(input.arrivals) ? input.arrivals : [];
}

/** The path of another node of the same graph. */
function siblingOf(path: string, id: string | undefined): string {
  return path.slice(0, path.lastIndexOf("/") + 1) + (id ?? "");
}

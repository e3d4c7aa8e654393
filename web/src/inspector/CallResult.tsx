import { useState } from "react";
import { useCallOfNode } from "@/api/queries";
import { writeJson } from "@/json";
import type { ToolCall } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { formatCount } from "@/ui/format";
import { Loaded } from "./Loaded";
import styles from "./parts.module.css";
import { Text } from "./Text";

type CallResultProps = {
  executionId: string;
  /** Of the agent that calls. */
  path: string;
  call: ToolCall;
};

/** The result of a call; a long one is shown whole when the reader asks for it. */
export function CallResult(props: CallResultProps) {
  const { call } = props;
  const [isWhole, setWhole] = useState(false);
  if (isWhole) return <WholeResult {...props} />;
  return (
    <>
      <Value value={call.result} />
      {call.wholeChars !== null && (
        <p className={styles.quiet}>
          This is its beginning; the model got all {formatCount(call.wholeChars)} characters.{" "}
          {call.ordinal !== null && (
            <Button small onClick={() => setWhole(true)}>
              Load the whole result
            </Button>
          )}
        </p>
      )}
    </>
  );
}

function WholeResult({ executionId, path, call }: CallResultProps) {
  const query = useCallOfNode(executionId, path, call.ordinal ?? 0);
  return (
    <Loaded query={query} label="Loading the whole result">
      {({ calls }) => {
        const recorded = calls.find(
          ({ ordinal, attempt }) => ordinal === call.ordinal && attempt === call.attempt,
        );
        return recorded === undefined ? (
          <p className={styles.quiet}>The service has no record of this call.</p>
        ) : (
          <Value value={recorded.result} />
        );
      }}
    </Loaded>
  );
}

function Value({ value }: { value: unknown }) {
  return <Text text={typeof value === "string" ? value : writeJson(value, 2)} />;
}

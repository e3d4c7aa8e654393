import { useNode } from "@/api/queries";
import { writeJson } from "@/json";
import { Loaded } from "./Loaded";
import type { PartProps } from "./part";
import { Text } from "./Text";

/** The step as it is stored. */
export function JsonTab({ executionId, node }: PartProps) {
  const step = useNode(executionId, node.path);
  return (
    <Loaded query={step} label="Loading the JSON">
      {(data) => <Text text={writeJson(data, 2)} />}
    </Loaded>
  );
}

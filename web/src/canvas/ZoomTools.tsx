import { type FitViewOptions, Panel, useReactFlow } from "@xyflow/react";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import styles from "./ZoomTools.module.css";

type ZoomToolsProps = {
  fit?: FitViewOptions;
  position?: "bottom-right" | "bottom-left";
  isFollowing?: boolean | undefined;
  onFollow?: ((isFollowing: boolean) => void) | undefined;
};

/** How a graph is fitted: below the headers of its lanes and above the tools. */
export const FIT: FitViewOptions = {
  maxZoom: 1,
  padding: { top: "52px", x: "8px", bottom: "48px" },
};

/** Zoom, fit, and whether the canvas follows the wave at work. */
export function ZoomTools({
  fit = FIT,
  position = "bottom-right",
  isFollowing = false,
  onFollow,
}: ZoomToolsProps) {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  return (
    <Panel position={position} className={styles.tools}>
      {onFollow && (
        <Button
          kind="quiet"
          small
          icon="follow"
          aria-pressed={isFollowing}
          onClick={() => onFollow(!isFollowing)}
        >
          Follow
        </Button>
      )}
      <IconButton icon="remove" label="Zoom out" small onClick={() => void zoomOut()} />
      <IconButton icon="add" label="Zoom in" small onClick={() => void zoomIn()} />
      <IconButton icon="fit" label="Fit" keys="F" small onClick={() => void fitView(fit)} />
    </Panel>
  );
}

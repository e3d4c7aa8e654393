import type { ComponentProps } from "react";
import styles from "@/ui/Chip.module.css";
import { classes } from "@/ui/classes";
import { Icon, type IconName } from "@/ui/icons";

type ChipProps = ComponentProps<"button"> & {
  icon?: IconName;
  /** With an arrow: the chip opens something. */
  opens?: boolean;
};

/** A round button for a choice that stays in sight, such as the model. */
export function Chip({ icon, opens = false, children, ...rest }: ChipProps) {
  return (
    <button type="button" {...rest} className={classes(styles.chip, rest.className)}>
      {icon && <Icon name={icon} small />}
      {children}
      {opens && <Icon name="down" small />}
    </button>
  );
}

// What the page uses of uPlot, whose own types are not in the repository.
export type Plot = {
  readonly ctx: CanvasRenderingContext2D;
  readonly over: HTMLElement;
  readonly root: HTMLElement;
  readonly bbox: { left: number; top: number; width: number; height: number };
  readonly cursor: { left?: number; top?: number };
  readonly select: { left: number; top: number; width: number; height: number };
  posToVal(position: number, scale: string): number;
  valToPos(value: number, scale: string, onCanvas?: boolean): number;
  setSelect(box: { left: number; top: number; width: number; height: number }, tells: boolean): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
};
export type PlotModule = { default: { new (options: object, data: unknown[], place: HTMLElement): Plot; pxRatio: number } };

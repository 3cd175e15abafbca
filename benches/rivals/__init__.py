"""Fifteen rivals in plain PyTorch, one row each: the class and its official sizes on two benchmarks."""

from types import SimpleNamespace

from .convolutional import Lsm, ResNet, UFno, UNet, Uno
from .oformer import OFormerSeries, OFormerSteady
from .spectral import DeepOnet, FFno, Mwt
from .transformers import FactFormer, Galerkin, Gnot, Ono
from .windows import HtNet, Swin

# The word of config.json -> class
VARIANTS = {
    "unet": UNet, "resnet": ResNet, "swin": Swin, "deeponet": DeepOnet, "mwt": Mwt, "ufno": UFno, "uno": Uno,
    "ffno": FFno, "lsm": Lsm, "galerkin": Galerkin, "gnot": Gnot, "factformer": FactFormer, "ono": Ono,
    "htnet": HtNet, "oformer_steady": OFormerSteady, "oformer_ns": OFormerSeries,
}

# What the scripts share; batch and shape are those of the benchmark.
COMMON = dict(space_dim=2, act="gelu", time_input=False, out_dim=1, task="steady", n_layers=8, n_heads=8, modes=12,
              mwt_k=3, mlp_ratio=2, ref=8, unified_pos=0)
BENCHMARKS = {
    "darcy": dict(batch=4, points=85 * 85, fields=1,
                  sizes=dict(COMMON, geotype="structured_2D", shapelist=[85, 85], fun_dim=1)),
    "elasticity": dict(batch=1, points=972, fields=0,
                       sizes=dict(COMMON, geotype="unstructured", shapelist=[972], fun_dim=0)),
}

OFORMER = dict(encoder_emb_dim=96, encoder_heads=4, encoder_depth=6, out_seq_emb_dim=256, decoder_heads=4,
               fourier_scale=0.5, out_channels=1, dropout=True)
HTNET = dict(in_dim=1, res_input=85, res_att=80, res_output=85, patch_size=6, subsample_attn=1, patch_padding=0,
             feature_dim=64, window_size=[4, 4, 4], depths=[1, 1, 1], num_heads=[1, 1, 1], F_modes=12, F_width=64,
             num_spectral_layers=5, mlp_hidden_dim=128, F_padding=5, boundary_condition="dirichlet", y_norm=True)

# name: (variant, {benchmark: (own sizes, official number of parameters, a complex one counted once)}).
# `clip` is the norm to which the official script clips the gradient.
RIVALS = {
    "unet": ("unet", {
        "darcy": (dict(n_hidden=128, unified_pos=1), 69_257_473),
        "elasticity": (dict(n_hidden=32), 4_984_707)}),
    "resnet": ("resnet", {
        "darcy": (dict(n_hidden=128, unified_pos=1), 2_429_825),
        "elasticity": (dict(n_hidden=32), 805_411)}),
    "swin": ("swin", {"darcy": (dict(n_hidden=128, unified_pos=1), 7_464_321)}),
    "deeponet": ("deeponet", {
        "darcy": (dict(n_hidden=256, n_layers=5), 2_376_961),
        "elasticity": (dict(n_hidden=256, n_layers=5), 1_025_025)}),
    "mwt": ("mwt", {
        "darcy": (dict(n_hidden=128, unified_pos=1), 40_490),
        "elasticity": (dict(n_hidden=128), 134_764)}),
    "ufno": ("ufno", {
        "darcy": (dict(n_hidden=32, unified_pos=1), 9_861_603),
        "elasticity": (dict(n_hidden=128), 185_976_201)}),
    "uno": ("uno", {
        "darcy": (dict(n_hidden=32, unified_pos=1), 20_581_397),
        "elasticity": (dict(n_hidden=32), 21_230_935)}),
    "ffno": ("ffno", {
        "darcy": (dict(n_hidden=128, unified_pos=1, clip=0.1), 6_357_889),
        "elasticity": (dict(n_hidden=128, clip=0.1), 15_842_691)}),
    "lsm": ("lsm", {
        "darcy": (dict(n_hidden=64), 19_195_969),
        "elasticity": (dict(n_hidden=32), 5_466_339)}),
    "galerkin": ("galerkin", {
        "darcy": (dict(n_hidden=128, unified_pos=1), 1_112_193),
        "elasticity": (dict(n_hidden=128), 1_096_065)}),
    "gnot": ("gnot", {
        "darcy": (dict(n_hidden=128, n_layers=3), 1_889_674),
        "elasticity": (dict(n_hidden=128), 4_870_553)}),
    "factformer": ("factformer", {"darcy": (dict(n_hidden=128, unified_pos=1), 1_782_913)}),
    "ono": ("ono", {
        "darcy": (dict(n_hidden=128, n_layers=10, psi_dim=32, attn_type="nystrom", clip=0.1), 2_029_137),
        "elasticity": (dict(n_hidden=128, mlp_ratio=1, psi_dim=8, attn_type="nystrom", clip=0.1), 1_104_833)}),
    "htnet": ("htnet", {"darcy": (HTNET, 13_368_532)}),
    "oformer": ("oformer_steady", {
        "darcy": (dict(OFORMER, in_channels=3, res=85), 2_556_321),
        "elasticity": (dict(OFORMER, in_channels=2, res=31), 2_556_225)}),
}


def build(variant, **sizes):
    return VARIANTS[variant](SimpleNamespace(**sizes))

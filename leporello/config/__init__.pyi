__all__: list[str]

from .built_in import built_in_path as built_in_path
from .config import Config as Config
from .loading import load_config as load_config
from .loading import load_space as load_space
from .loading import loader_of as loader_of
from .specs import Pipeline as Pipeline
from .specs import PipelineSpec as PipelineSpec
from .specs import Spec as Spec
from .specs import TaskSpec as TaskSpec
from .training_settings import TrainingSpec as TrainingSpec
